"""REST API of the apps of a workspace."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.schema import answers
from accounts.rest.views import checked
from workspaces import access
from workspaces.runs import declaring
from workspaces.state import declared
from workspaces.state.declared import App

from .api import OneWorkspaceView
from .app_shapes import AppBody, AppChangeBody, AppShape
from .representation import app_json


class AppsView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Declare an app of the workspace"),
        description=(
            "A program with a web page, at a port in the workspace; at any time, without a restart. People open it "
            "at `url`, which needs a session of Berth. `shared_with`: `me`, its owner alone; or `tenant`, everyone in "
            "the tenant."
        ),
        request=AppBody,
        responses=answers({201: AppShape}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        access.require_own(self.actor, self.workspace)
        app = App(**checked(AppBody, request))
        declaring.add(self.actor, self.workspace, app)
        return Response(app_json(self.workspace, app), status=201)


class AppView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Change an app's name, or who may open it"),
        request=AppChangeBody,
        responses=answers({200: AppShape}, 404, 409, 422),
    )
    def patch(self, request: Request, id: UUID, port: int) -> Response:
        access.require_own(self.actor, self.workspace)
        body: dict[str, Any] = checked(AppChangeBody, request)
        declaring.change(self.actor, self.workspace, port, **body)
        self.workspace.refresh_from_db(fields=["apps"])
        return Response(app_json(self.workspace, declared.require_app(self.workspace, port)))

    @extend_schema(
        summary=gettext_noop("Close the way to an app"),
        description="Its open connections end at once. The program in the workspace runs on.",
        responses=answers({204: None}, 404, 409),
    )
    def delete(self, request: Request, id: UUID, port: int) -> Response:
        access.require_own(self.actor, self.workspace)
        declaring.remove(self.actor, self.workspace, port)
        return Response(status=204)
