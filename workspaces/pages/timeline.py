"""The ten steps of a workspace's current start, and its events by run, for its page. Pure: from rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from quotas.models import Claim
from workspaces.models import STEPS, Event, Phase, Step, Workspace

Json = dict[str, Any]
DONE, CURRENT, WAITING, FAILED, TODO = "done", "current", "waiting", "failed", "todo"
STATE_OF_CURRENT = {Phase.WAITING: WAITING, Phase.STARTING: CURRENT, Phase.READY: DONE, Phase.FAILED: FAILED}


class RunLines(NamedTuple):
    """Events of one run, newest first. `admitted_at`, `released_at`: while it held its claim; None: not, or not yet."""

    run: UUID | None
    began_at: datetime
    admitted_at: datetime | None
    released_at: datetime | None
    events: list[tuple[Event, Json]]

    @property
    def took(self) -> timedelta | None:
        return self.released_at - self.admitted_at if self.released_at and self.admitted_at else None


class StepLine(NamedTuple):
    step: Step
    state: str
    took: timedelta | None


def by_run(events: Iterable[tuple[Event, Json]], claims: Mapping[UUID, Claim]) -> list[RunLines]:
    """Group events, newest first, by the runs that they belong to."""
    runs = []
    for run, group in groupby(events, key=lambda pair: pair[0].run):
        lines = list(group)
        claim = claims.get(run) if run else None
        times = (
            (claim.created_at, claim.admitted_at, claim.released_at)
            if claim
            else (lines[-1][0].at, None, None)
        )
        runs.append(RunLines(run, *times, lines))
    return runs


def timeline(workspace: Workspace, events: Iterable[Event]) -> list[StepLine]:
    """Return the state of each step. A step took the time between the event of the step before and its own."""
    told_at = _told_at(workspace, events)
    reached = STEPS.index(Step(workspace.step))
    lines = []
    before: datetime | None = None
    for index, step in enumerate(STEPS):
        state = DONE if index < reached else TODO
        if index == reached:
            state = STATE_OF_CURRENT.get(Phase(workspace.phase), TODO)
        at = told_at.get(step)
        lines.append(StepLine(step, state, at - before if at and before and state == DONE else None))
        before = at or before
    return lines


def _told_at(workspace: Workspace, events: Iterable[Event]) -> dict[str, datetime]:
    """Time of the event that ended each step in this run. Events of troubles have a higher level."""
    return {
        event.step: event.at
        for event in events
        if event.run == workspace.run and event.step and event.level == Event.Level.INFO
    }


def start_took(workspace: Workspace, events: Iterable[Event]) -> timedelta | None:
    """Time from the request to ready; from the admission if `events` do not contain the request."""
    if workspace.ready_at is None or workspace.started_at is None:
        return None
    asked_at = _told_at(workspace, events).get(Step.REQUEST)
    return workspace.ready_at - (asked_at or workspace.started_at)
