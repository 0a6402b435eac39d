"""Helpers of several checks: claims and units over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from tests.proof.life.records import Claim, Event


def held(claims: Iterable[Claim]) -> list[Claim]:
    return [claim for claim in claims if claim.admitted_at is not None]


def begun(claim: Claim) -> datetime:
    assert claim.admitted_at is not None
    return claim.admitted_at


def by_run(events: Iterable[Event]) -> dict[str, list[Event]]:
    runs = defaultdict[str, list[Event]](list)
    for event in events:
        if event.run:
            runs[event.run].append(event)
    return runs


def peaks(moments: Iterable[tuple[datetime | None, datetime | None, int]]) -> Iterator[tuple[datetime, int]]:
    """Yield the units in use at each moment at which they grow."""
    changes = list[tuple[datetime, int]]()
    for began, ended, units in moments:
        if began is not None:
            changes.append((began, units))
            if ended is not None:
                changes.append((ended, -units))
    used = 0
    for at, units in sorted(changes):  # at the same moment, returns come first
        used += units
        if units > 0:
            yield at, used
