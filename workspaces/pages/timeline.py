"""The ten steps of a workspace's current start, for its page. Pure: from the row and the run's events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from workspaces.models import STEPS, Event, Phase, Step, Workspace

DONE, CURRENT, WAITING, FAILED, TODO = "done", "current", "waiting", "failed", "todo"
STATE_OF_CURRENT = {Phase.WAITING: WAITING, Phase.STARTING: CURRENT, Phase.READY: DONE, Phase.FAILED: FAILED}


class StepLine(NamedTuple):
    step: Step
    state: str
    took: timedelta | None


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
