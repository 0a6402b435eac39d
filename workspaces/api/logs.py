"""REST API of a workspace's log, as text or line by line."""

from __future__ import annotations

from uuid import UUID

from channels.db import database_sync_to_async
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.credentials.sign_in import still
from accounts.errors import Conflict, Invalid, Refusal
from accounts.models import Scope
from accounts.rest.schema import answers
from accounts.rest.views import Query
from workloads.logs import api as logs
from workloads.logs import text
from workloads.logs.tailing import FIRST_LINES, Tail
from workspaces import access
from workspaces.cluster.pod import CONTAINER
from workspaces.models import Workspace
from workspaces.state.story import hint, sentence

from .api import OneWorkspaceView

LONGEST_TAIL = 10_000
LONGEST_FOLLOW_SECONDS = 600.0


class TailQuery(Query):
    container = serializers.CharField(default="", max_length=63, allow_blank=True)
    tail = serializers.IntegerField(default=FIRST_LINES, min_value=0, max_value=LONGEST_TAIL)
    follow = serializers.BooleanField(default=False)
    run = serializers.UUIDField(default=None)
    lines = serializers.BooleanField(default=False)


class LogsView(OneWorkspaceView):
    content_negotiation_class = logs.WhateverAccepted

    @extend_schema(
        summary=gettext_noop("The log of a workspace, also of runs that are over"),
        description=(
            "The last lines as text, `tail` of them. With `lines=true`, or with one of `search`, `from`, `to` and "
            "`after`, line by line as JSON, the oldest first, as for jobs."
        ),
        parameters=[
            OpenApiParameter("container", str, description="A workspace has one: leave it out."),
            OpenApiParameter("follow", bool, description="Go on with what comes, for ten minutes at most."),
            OpenApiParameter("lines", bool, description="Line by line, as JSON."),
            *(one for one in logs.PARAMETERS if one.name not in ("index", "attempt")),
        ],
        responses=answers(
            {(200, "text/plain"): OpenApiTypes.STR, (200, "application/json"): logs.LinesShape},  # type: ignore[dict-item]
            404, 409, 422,
        ),
    )  # fmt: skip
    def get(self, request: Request, id: UUID) -> HttpResponseBase:
        access.require_log(self.actor, self.workspace)
        asked = TailQuery.of(request)
        if asked["container"] not in ("", CONTAINER):
            message = _("A workspace has one container: “%(name)s”.") % {"name": CONTAINER}
            raise Invalid("no_such_container", message, _("Leave it out."), fields={"container": [message]})
        if asked["lines"] or {"search", "from", "to", "after", "download"} & set(request.query_params):
            return logs.answer(request, self.workspace.pk, self.workspace.object_name)
        tail = Tail(self.workspace.pk, {"run": asked["run"]})
        first = tail.first(asked["tail"])
        if tail.is_empty:
            raise no_log(self.workspace)
        parts = (
            text.followed(
                tail,
                self.workspace.pk,
                first,
                seconds=LONGEST_FOLLOW_SECONDS,
                may_go_on=database_sync_to_async(self.may_go_on),
            )
            if asked["follow"]
            else text.once(first)
        )
        answer = text.Text(self.actor.user.pk, parts)
        if not connection.in_atomic_block:
            close_old_connections()  # a reader that stays for minutes keeps no place of the web process's pool
        return StreamingHttpResponse(answer, content_type="text/plain; charset=utf-8")

    def may_go_on(self) -> bool:
        """Return False once the reader lost access. Nothing changes while the database is away."""
        try:
            actor = still(self.actor)
            access.require_log(actor, access.get(actor, self.workspace.pk))
            return actor.may(Scope.READ)
        except Refusal:
            return False
        except (OperationalError, InterfaceError):
            return True


def no_log(workspace: Workspace) -> Conflict:
    """Conflict for a workspace that wrote nothing, with its message, which says when there will be something."""
    doing = sentence(workspace.message_code, workspace.message_data)
    advice = hint(workspace.message_code, workspace.message_data)
    return Conflict("no_log_yet", _("There is no log at the moment. %(doing)s") % {"doing": doing}, advice)
