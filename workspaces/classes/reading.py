"""Class launches as people see them: a line for each person, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Q
from django.utils.translation import gettext_lazy as _

from accounts.errors import Refusal
from quotas.queries import queues_of
from workloads.figures import moment
from workspaces.api import representation
from workspaces.models import ClassLaunch, Phase, Seat, Workspace

Json = dict[str, Any]
REFUSED, PENDING, AT_SIGN_IN = "refused", "pending", "at_sign_in"
RUNS = (Phase.WAITING, Phase.STARTING, Phase.READY, Phase.STOPPING)
MOVING = (PENDING, Phase.WAITING, Phase.STARTING, Phase.STOPPING, Phase.DELETING)
# Phases without a workspace: the status that pages show, and its word.
SHOWN = {
    REFUSED: (Phase.FAILED, _("not launched")),
    PENDING: (Phase.WAITING, _("to be launched")),
    AT_SIGN_IN: (Phase.STOPPED, _("at sign-in")),
}


@dataclass(frozen=True)
class Line:
    """Person of a class. `problem`: what is wrong, as {code, message, hint}; `message`: what happens now."""

    seat: Seat
    phase: str
    message: str = ""
    problem: Json | None = None

    @property
    def person(self) -> str:
        return self.seat.user.get_username() if self.seat.user else self.seat.username

    @property
    def workspace(self) -> Workspace | None:
        return self.seat.workspace

    @property
    def status(self) -> str:
        return SHOWN[self.phase][0] if self.phase in SHOWN else self.phase

    @property
    def label(self) -> str:
        return str(SHOWN[self.phase][1] if self.phase in SHOWN else Phase(self.phase).label)

    @property
    def is_moving(self) -> bool:
        return self.phase in MOVING


def phase_of(seat: Seat) -> str:
    """Return the workspace's phase, or where its launch stands."""
    if seat.workspace is not None:
        return Phase.DELETED if seat.workspace.deleted_at else seat.workspace.phase
    if seat.code:
        return REFUSED
    return PENDING if seat.due_at else AT_SIGN_IN


def lines_of(row: ClassLaunch, refused: Mapping[UUID, Refusal] | None = None) -> list[Line]:
    """Return a line per person, with as many queries for any number. `refused`: refusals of an action just now."""
    seats = list(
        row.seats.select_related("user", "workspace__pool__cluster", "workspace__tenant").order_by("pk")
    )
    waiting = [one.workspace.run for one in seats if one.workspace and one.workspace.phase == Phase.WAITING]
    queues = queues_of(run for run in waiting if run)
    return [_line(seat, queues, refused or {}) for seat in seats]


def _line(seat: Seat, queues: Mapping[UUID, Any], refused: Mapping[UUID, Refusal]) -> Line:
    workspace, phase = seat.workspace, phase_of(seat)
    if workspace is None:
        problem = {"code": seat.code, "message": seat.message, "hint": seat.hint} if seat.code else None
        return Line(seat, phase, problem=problem)
    problem = representation.problem_json(workspace)
    if phase == Phase.FAILED:
        problem = representation.failure_json(workspace.failure)
    if refusal := refused.get(workspace.pk):
        problem = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
    queue = queues.get(workspace.run) if workspace.run else None
    message = queue["reason"]["message"] if queue else representation.message(workspace)
    kept = {name: problem[name] for name in ("code", "message", "hint")} if problem else None
    return Line(seat, phase, message, kept)


def line_json(line: Line) -> Json:
    workspace = line.workspace
    return {
        "person": line.person,
        "workspace": str(workspace.pk) if workspace else None,
        "phase": line.phase,
        "message": line.message,
        "problem": line.problem,
        "ready_at": moment(workspace.ready_at) if workspace else None,
        "stops_at": moment(workspace.stops_at) if workspace else None,
    }


@dataclass(frozen=True)
class Counts:
    """People of a class, by where their workspaces stand. `last_ready_at`: when the last of those became ready."""

    people: int = 0
    ready: int = 0
    on_the_way: int = 0
    waiting: int = 0
    to_come: int = 0
    problems: int = 0
    last_ready_at: datetime | None = None


def counts_of(rows: Iterable[ClassLaunch]) -> dict[UUID, Counts]:
    """Return the counts of these classes, in one query for all of them."""
    live, none = Q(workspace__deleted_at=None, workspace__isnull=False), Q(workspace=None)
    failed = live & Q(workspace__phase=Phase.FAILED)
    ready = live & Q(workspace__phase=Phase.READY)
    rows = list(rows)
    counted = (
        Seat.objects.filter(class_launch__in=rows)
        .order_by()
        .values("class_launch")
        .annotate(
            people=Count("pk"),
            ready=Count("pk", filter=ready),
            on_the_way=Count("pk", filter=live & Q(workspace__phase=Phase.STARTING)),
            waiting=Count("pk", filter=live & Q(workspace__phase=Phase.WAITING)),
            to_come=Count("pk", filter=none & Q(code="")),
            problems=Count("pk", filter=(none & ~Q(code="")) | failed),
            last_ready_at=Max("workspace__ready_at", filter=ready),
        )
    )
    found: dict[UUID, Counts] = {}
    for one in counted:
        values: Json = dict(one)
        class_id = values.pop("class_launch")
        found[class_id] = Counts(**values)
    return {row.pk: found.get(row.pk, Counts()) for row in rows}
