"""Is anything done in a run? Pure: from what was measured to what keeps it busy, or since when it is idle.

Busy if any source says so. What is not known is not idle: figures that are missing or old, an agent that is silent, a
workspace that does not answer, a time in which nobody asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from monitoring.idle.figures import Line, Quiet
from workspaces.state.inside import Inside

# A run is asked so often while its figures are quiet: a quarter of the time that it may be idle, within these.
LEAST_OFTEN, MOST_OFTEN = timedelta(minutes=5), timedelta(minutes=1)
LATE = timedelta(minutes=2)  # a look that comes late breaks nothing
# A shorter pause is shown as use: training that computes and waits by turns does not flicker.
SETTLES = timedelta(minutes=5)
# Two ages of one file, from clocks that differ by parts of a second, mean the same touch.
SAME_TOUCH = timedelta(seconds=5)


@dataclass(frozen=True, kw_only=True)
class Known:
    """What looks have found inside a run so far: the last answer, and since when every one was quiet."""

    asked_at: datetime | None = None
    answered_at: datetime | None = None
    answer: Inside | None = None
    quiet_since: datetime | None = None
    kept_at: datetime | None = None

    def is_due(self, now: datetime, allowed: timedelta) -> bool:
        return self.asked_at is None or now - self.asked_at >= often(allowed)

    def is_fresh(self, now: datetime, allowed: timedelta) -> bool:
        return self.answered_at is not None and now - self.answered_at <= 2 * often(allowed) + LATE

    def heard(self, now: datetime, answer: Inside | None, allowed: timedelta) -> Known:
        """Return what is known after a run was asked. None: it did not answer."""
        if answer is None:
            return replace(self, asked_at=now)
        goes_on = self.quiet_since is not None and self.is_fresh(now, allowed)
        quiet_since = None if busy_inside(answer) else self.quiet_since if goes_on else now
        return replace(
            self,
            asked_at=now,
            answered_at=now,
            answer=answer,
            quiet_since=quiet_since,
            kept_at=self._kept(now, answer),
        )

    def _kept(self, now: datetime, answer: Inside) -> datetime | None:
        if answer.keep_alive_seconds is None:
            return self.kept_at
        at = now - timedelta(seconds=answer.keep_alive_seconds)
        return self.kept_at if self.kept_at and abs(at - self.kept_at) < SAME_TOUCH else at


@dataclass(frozen=True)
class Verdict:
    """Since when a run is idle; None: it is not, because of `busy_by`, or it stopped being busy just now (empty)."""

    since: datetime | None = None
    busy_by: Sequence[str] = ()


def often(allowed: timedelta) -> timedelta:
    return max(MOST_OFTEN, min(LEAST_OFTEN, allowed / 4))


def busy_figures(found: Quiet, now: int) -> list[str]:
    """Return which figures keep a run busy now, or are not known; none: all are quiet."""
    lines: dict[str, Line | None] = {"gpu": found.gpu, "cpu": found.cpu}
    codes = []
    for name, line in lines.items():
        if line is not None and not (line.quiet and line.quiet[-1][1] >= now):
            codes.append(name if line.is_busy else f"{name}_unknown")
    return codes


def quiet_since(found: Quiet, now: int) -> datetime | None:
    """Return since when all figures are quiet without a gap; None: they are not now."""
    both = found.both
    return datetime.fromtimestamp(both[-1][0], UTC) if both and both[-1][1] >= now else None


def busy_inside(answer: Inside) -> list[str]:
    counts = {"kernel": answer.kernels, "terminal": answer.terminals, "ssh": answer.ssh}
    return [name for name, count in counts.items() if count]


def judge(
    now: datetime,
    *,
    begun_at: datetime,
    figures: Sequence[str],
    figures_since: datetime | None,
    known: Known,
    kept_at: datetime | None,
    allowed: timedelta,
) -> Verdict:
    """Decide on one run. `figures`: what figures say (busy_figures); `kept_at`: keep-alive by page or API."""
    if figures or figures_since is None:
        return Verdict(busy_by=tuple(figures) or ("cpu_unknown",))
    if known.answer is None or not known.is_fresh(now, allowed):
        return Verdict(busy_by=("inside_unknown",))
    if inside := busy_inside(known.answer):
        return Verdict(busy_by=tuple(inside))
    assert known.quiet_since is not None
    kept = max((at for at in (kept_at, known.kept_at) if at is not None), default=None)
    settles = min(SETTLES, allowed / 4)
    if kept is not None and now - kept < settles:
        return Verdict(busy_by=("keep_alive",))
    since = max(at for at in (begun_at, figures_since, known.quiet_since, kept) if at is not None)
    return Verdict(since=since) if now - since >= settles else Verdict()
