"""Steps after a look: show the state, warn before the stop, stop. Each step checks the row under its lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import override

from monitoring.idle import figures
from monitoring.idle.activity import Verdict
from workspaces.models import Workspace
from workspaces.runs import idleness
from workspaces.runs.idleness import Idleness
from workspaces.state.idle_words import Measured

if TYPE_CHECKING:
    from .looking import Candidate

Tell = Callable[..., Mapping[UUID, Any]]


def take(found: Sequence[Candidate], now: datetime, ask: Tell) -> None:
    """Take the next step for each run; write into the terminals of those that were warned."""
    acts = []
    for one in found:
        verdict = as_announced(one.workspace, one.verdict(now))
        ends = one.ends(verdict.since) if verdict.since else None
        if verdict.since is None or ends is None or not _is_time(one, verdict.since, ends, now):
            write(one.workspace, verdict, ends)
        else:
            acts.append((one, verdict.since, max(ends, now + one.warning(now))))
    if not acts:
        return
    seconds = int(now.timestamp())
    peaks = figures.peaks([one.asked(since, now) for one, since, _stops in acts], seconds)
    warned = {}
    for one, since, stops_at in acts:
        measured = _measured(one, *peaks.get(one.run, (None, None)))
        if _was_warned(one.workspace, since):
            idleness.stop(one.workspace.pk, one.workspace.pool.cluster_id, one.run, since, measured)
        elif idleness.warn(one.workspace.pk, one.run, Idleness(since, stops_at), measured):
            warned[one.run] = line_for(one.workspace, stops_at)
    if warned:
        ask([one.workspace for one, _since, _stops in acts if one.run in warned], warned)


def as_announced(row: Workspace, verdict: Verdict) -> Verdict:
    """Return the verdict with the time since when it is idle as its warning said, while that holds."""
    if verdict.since is not None and row.idle_since is not None and _was_warned(row, verdict.since):
        return replace(verdict, since=row.idle_since)
    return verdict


def _is_time(one: Candidate, since: datetime, ends: datetime, now: datetime) -> bool:
    """Return True if the run is to be warned, or to be stopped, now. It was asked in this look."""
    if one.known.answered_at != now:
        return False
    if _was_warned(one.workspace, since):
        announced = one.workspace.idle_stops_at
        return announced is not None and now >= max(announced, ends)  # the rules may allow more since then
    return now >= ends - one.warning(now)


def _was_warned(row: Workspace, since: datetime) -> bool:
    return row.idle_warned_at is not None and since <= row.idle_warned_at


def write(row: Workspace, verdict: Verdict, ends: datetime | None) -> None:
    """Show the state on the row, if it differs. A run that stopped being busy just now stays as it is shown."""
    if verdict.since is not None and _was_warned(row, verdict.since) and not idleness.is_put_off(row, ends):
        return
    if verdict.since is None and not verdict.busy_by and ends is None and not _shows_idle(row):
        return
    found = Idleness(verdict.since, ends, verdict.busy_by)
    shown = (row.idle_since, row.idle_stops_at, tuple(row.idle_busy_by))
    if (found.since, found.stops_at, tuple(found.busy_by)) != shown and row.run is not None:
        idleness.note(row.pk, row.run, found)


def _shows_idle(row: Workspace) -> bool:
    return row.idle_since is not None


def _measured(one: Candidate, gpu_percent: float | None, cpu_cores: float | None) -> Measured:
    answer = one.known.answer
    assert answer is not None
    return Measured(
        gpu_percent=None if gpu_percent is None else round(gpu_percent, 1),
        cpu_cores=None if cpu_cores is None else round(cpu_cores, 3),
        kernels=answer.kernels,
        terminals=answer.terminals,
        ssh=answer.ssh,
    )


def line_for(row: Workspace, stops_at: datetime) -> str:
    """Return the line for the open terminals, in the language of the workspace's owner."""
    with override(row.owner.language or "en"):
        at = date_format(timezone.localtime(stops_at), "H:i T")
        text = _(
            "Berth: this workspace is idle and stops at %(time)s. Files are kept. To keep it running: %(command)s"
        )
        return text % {"time": at, "command": 'touch "$BERTH_KEEP_ALIVE"'}
