"""REST API of the people with whom a workspace is shared."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import checked
from workloads.figures import moment
from workspaces import access
from workspaces.models import Share, ShareRole
from workspaces.runs import sharing

from .api import OneWorkspaceView


class ShareBody(StrictSerializer):
    username = serializers.CharField(max_length=150, help_text="Of a member of its tenant.")
    role = serializers.ChoiceField(
        choices=ShareRole.choices,
        help_text="look: its page, logs and metrics; work: all apps, Jupyter and SSH too.",
    )


class ShareShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    username = serializers.CharField()
    role = serializers.ChoiceField(choices=ShareRole.choices)
    created_at = serializers.DateTimeField()


class SharesShape(serializers.Serializer[Any]):
    results = ShareShape(many=True)
    next = serializers.CharField(allow_null=True)


def share_json(row: Share) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "username": row.user.get_username(),
        "role": row.role,
        "created_at": moment(row.created_at),
    }


class SharesView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("People with whom the workspace is shared"),
        description="All of them for its owner and owners of the tenant; for a colleague, their own share.",
        responses=answers({200: SharesShape}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        access.require_log(self.actor, self.workspace)
        manages = access.may_manage(self.actor, self.workspace)
        rows = sharing.shares_of(self.actor, self.workspace, manages=manages)
        return Response({"results": [share_json(row) for row in rows], "next": None})

    @extend_schema(
        summary=gettext_noop("Share the workspace with a colleague"),
        description=(
            "With a member of its tenant. `look`: its page, logs and metrics. `work`: all apps, Jupyter, "
            "terminal, files and SSH too, as its owner does, with the files and secrets in it. Neither may stop, "
            "change, delete or share it. Another role replaces the one that they have: 200 when nothing is new."
        ),
        request=ShareBody,
        responses=answers({201: ShareShape, 200: ShareShape}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        row, changed = sharing.share(self.actor, self.workspace, **checked(ShareBody, request))
        return Response(share_json(row), status=201 if changed else 200)


class ShareView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Revoke a share"),
        description="Everything that the colleague has open closes at once. A colleague may give their own share back.",
        responses=answers({204: None}, 404),
    )
    def delete(self, request: Request, id: UUID, share: UUID) -> Response:
        sharing.end(self.actor, self.workspace, share)
        return Response(status=204)
