"""REST API of a workspace's weekly schedule."""

from __future__ import annotations

from datetime import time
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
from workspaces.models import Schedule, Workspace
from workspaces.runs import schedule

from .api import OneWorkspaceView

CLOCK = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"


class ScheduleBody(StrictSerializer):
    start = serializers.RegexField(CLOCK, help_text="As 09:00.")
    stop = serializers.RegexField(CLOCK, help_text="Earlier than the start: on the next day.")
    days = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=7), min_length=1, max_length=7
    )
    time_zone = serializers.CharField(max_length=64, help_text="As in Europe/Berlin.")
    is_on = serializers.BooleanField(required=False, default=True, help_text="False: a vacation.")


class TurnShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    action = serializers.ChoiceField(choices=["start", "stop"])


class ScheduleShape(serializers.Serializer[Any]):
    start = serializers.CharField()
    stop = serializers.CharField()
    days = serializers.ListField(child=serializers.IntegerField())
    time_zone = serializers.CharField()
    is_on = serializers.BooleanField()
    next = TurnShape(allow_null=True, help_text="Null while it is off.")


def schedule_json(row: Schedule, workspace: Workspace) -> dict[str, Any]:
    turn = schedule.next_turn(row, workspace)
    return {
        "start": f"{row.start:%H:%M}",
        "stop": f"{row.stop:%H:%M}",
        "days": row.days,
        "time_zone": row.time_zone,
        "is_on": row.is_on,
        "next": {"at": moment(turn.at), "action": str(turn.act)} if turn else None,
    }


class ScheduleView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Weekly schedule of the workspace"),
        description="404 `no_schedule` where it has none.",
        responses=answers({200: ScheduleShape}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        access.require_log(self.actor, self.workspace)
        row = schedule.of(self.workspace)
        if row is None:
            raise schedule.no_schedule()
        return Response(schedule_json(row, self.workspace))

    @extend_schema(
        summary=gettext_noop("Start and stop the workspace at times of the week"),
        description=(
            "In the time zone that is named, also over changes of its clocks. A start that finds no room for 15 "
            "minutes leaves the queue; a stop is announced 10 minutes before. A start, stop or keep-alive by hand "
            "holds for the rest of that day."
        ),
        request=ScheduleBody,
        responses=answers({200: ScheduleShape}, 404, 409, 422),
    )
    def put(self, request: Request, id: UUID) -> Response:
        access.require_own(self.actor, self.workspace)
        body = checked(ScheduleBody, request)
        body |= {name: time.fromisoformat(body[name]) for name in ("start", "stop")}
        row = schedule.put(self.actor, self.workspace, **body)
        return Response(schedule_json(row, self.workspace))

    @extend_schema(summary=gettext_noop("Remove the schedule"), responses=answers({204: None}, 404))
    def delete(self, request: Request, id: UUID) -> Response:
        schedule.remove(self.actor, self.workspace)
        return Response(status=204)
