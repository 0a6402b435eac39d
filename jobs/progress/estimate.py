"""Estimates of the time at which a part, and a job, is done, by the pace of what it reports. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

LONGEST = timedelta(days=365)


def paced(pace: Mapping[str, Any], run: str, progress: float, at: datetime) -> dict[str, Any]:
    """Return the pace after a report: it is measured from the first report of a run.

    A run that goes on from a checkpoint begins with what was done before. One that reports less than before began anew.
    """
    seconds = at.timestamp()
    if pace.get("run") != run or progress < pace["begun_with"]:
        return {"run": run, "since": seconds, "begun_with": progress, "at": seconds}
    return {**pace, "at": max(seconds, pace["at"])}


def end_of_part(progress: float | None, pace: Mapping[str, Any], run: str, now: datetime) -> datetime | None:
    """Return when a part will be done; None: its run has not reported enough, or is later than it expected."""
    if progress is None or pace.get("run") != run:
        return None
    done, took = progress - pace["begun_with"], pace["at"] - pace["since"]
    if done <= 0 or took <= 0:
        return None
    left = took * (1 - progress) / done
    if left > LONGEST.total_seconds():
        return None
    end = datetime.fromtimestamp(pace["at"], UTC) + timedelta(seconds=left)
    return end if end >= now else None


def end_of_job(
    fraction: float, ends: Sequence[datetime | None], others: int, started_at: datetime | None, now: datetime
) -> datetime | None:
    """Return when a job will be done. `ends`: of the parts that run; `others`: parts that wait or are not begun.

    While others wait, what is done so far says how long the rest takes.
    """
    if not ends:
        return None
    if not others:
        known = [end for end in ends if end is not None]
        return max(known) if len(known) == len(ends) else None
    if started_at is None or fraction <= 0:
        return None
    left = (now - started_at) * ((1 - fraction) / fraction)
    return now + left if left <= LONGEST else None
