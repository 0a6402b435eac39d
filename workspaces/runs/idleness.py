"""Idleness of runs: what the room above measured, a warning before the stop, and the stop itself; files stay.

The room above decides. It says which run it looked at and what it found; each function here changes the row only if
that run is still on, and nobody kept it alive meanwhile. A keep-alive and a stop lock the same row: the later one sees
what the first one did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from quotas import admission
from workspaces import enqueue
from workspaces.access import require_manage
from workspaces.models import Desired, Event, Phase, Workspace
from workspaces.state import by_hand, runs
from workspaces.state.idle_words import Measured
from workspaces.state.live import changing
from workspaces.state.story import add_event

from . import lifecycle


@dataclass(frozen=True)
class Idleness:
    """State of a run. `since`: nothing was done in it since then; `stops_at`: when it is stopped, if that goes on."""

    since: datetime | None = None
    stops_at: datetime | None = None
    busy_by: Sequence[str] = ()


def note(workspace_id: UUID, run: UUID, found: Idleness) -> None:
    """Write what was found, if it differs. A warning is over once the run is in use, or may be idle for longer."""
    with changing(workspace_id) as row:
        if not _is_on(row, run):
            return
        if row.idle_warned_at is not None:
            is_idle = found.since is not None and found.since <= row.idle_warned_at
            if is_idle and not is_put_off(row, found.stops_at):
                return  # as it was warned of
            add_event(row, "idle_put_off" if is_idle else "idle_over")
        _set(row, found)


def is_put_off(row: Workspace, stops_at: datetime | None) -> bool:
    """Return True if the rules of now stop the run later than was announced."""
    return row.idle_stops_at is None or stops_at is None or stops_at > row.idle_stops_at


def warn(workspace_id: UUID, run: UUID, found: Idleness, measured: Measured) -> bool:
    """Announce the stop at `found.stops_at`, once. Return False if it is not on, kept alive, or warned already."""
    with changing(workspace_id) as row:
        since, stops_at = found.since, found.stops_at
        if since is None or stops_at is None or not _is_on(row, run) or _was_kept(row, since):
            return False
        if row.idle_warned_at is not None:
            return False
        _set(row, found)
        row.idle_warned_at = timezone.now()
        _tell(row, "idle_stops_soon", since, measured, until=stops_at.isoformat())
        return True


def stop(workspace_id: UUID, cluster_id: UUID, run: UUID, since: datetime, measured: Measured) -> bool:
    """Stop a run that was warned and is idle since then. Return False if it is not on, was kept alive, or not due."""
    with transaction.atomic():
        admission.lock(cluster_id)
        with changing(workspace_id) as row:
            if not _is_on(row, run) or _was_kept(row, since):
                return False
            if row.idle_warned_at is None or row.idle_stops_at is None or timezone.now() < row.idle_stops_at:
                return False
            _tell(row, "stopped_by_idleness", since, measured, since=since.isoformat())
            has_run = runs.stop(row)
    if has_run:
        enqueue.reconcile([workspace_id])
    return True


def keep_alive(actor: Actor, workspace: Workspace) -> bool:
    """Count the workspace as used now. Return True if a stop was announced."""
    with lifecycle.allowed(actor, workspace, "keep-alive"):
        require_manage(actor, workspace)
    with lifecycle.audited_change(actor, workspace, "keep-alive") as row:
        if row.desired != Desired.RUNNING:
            raise Conflict(
                "not_running",
                _("It is not running, so there is nothing to keep."),
                _("Start it when you need it."),
            )
        was_warned = row.idle_warned_at is not None
        was_warned |= by_hand.note(row)
        row.kept_alive_at = timezone.now()
        if was_warned:
            add_event(row, "kept_alive", by=actor.user.get_username())
        _set(row, Idleness(busy_by=row.idle_busy_by))
    return was_warned


def _tell(row: Workspace, code: str, idle_since: datetime, measured: Measured, **data: str) -> None:
    minutes = max(int((timezone.now() - idle_since).total_seconds() // 60), 1)
    level = Event.Level.WARNING
    add_event(row, code, level=level, minutes=minutes, measured=measured.as_data(), **data)


def _is_on(row: Workspace, run: UUID) -> bool:
    return row.run == run and row.phase == Phase.READY and row.desired == Desired.RUNNING and not row.ending


def _was_kept(row: Workspace, since: datetime) -> bool:
    return row.kept_alive_at is not None and row.kept_alive_at > since


def _set(row: Workspace, found: Idleness) -> None:
    row.idle_since, row.idle_stops_at, row.idle_busy_by = found.since, found.stops_at, list(found.busy_by)
    row.idle_warned_at = None
