"""Sort firings into alerts. Pure: values in, a plan out.

A member that fires again soon after it ended belongs to its alert: what flaps is one alert. Others of one group (same
code, cluster and tenant) that begin one soon after another become one alert: a dead switch is one alert and not forty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from monitoring.alerts.firing import Firing

JOINS_WITHIN = timedelta(minutes=5)
# A member that fires again within this time is the same firing.
SAME_WITHIN = timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """An alert that a firing may belong to. `keys`: its members, by key, and when each ended; None: it fires."""

    id: UUID
    group: str
    last_at: datetime
    is_open: bool
    keys: Mapping[str, datetime | None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    new: list[list[Firing]] = field(default_factory=list)
    # By alert: firings that join it, and members that fire again.
    joining: dict[UUID, list[Firing]] = field(default_factory=dict)
    again: dict[UUID, list[Firing]] = field(default_factory=dict)
    # By alert: keys of members that fire no longer.
    over: dict[UUID, list[str]] = field(default_factory=dict)


def plan(
    firings: Iterable[Firing], standing: Collection[Standing], now: datetime, silent: Collection[str] = ()
) -> Plan:
    """Return what has to change. `silent`: prefixes of keys whose source did not answer, so nothing of it is over."""
    found = {firing.key: firing for firing in firings}
    ended = sorted(
        (at, alert.is_open, key, alert.id) for alert in standing for key, at in alert.keys.items() if at
    )
    home = {key: alert for at, _, key, alert in ended if now - at <= SAME_WITHIN}
    fires = {key for alert in standing for key, at in alert.keys.items() if at is None}
    room = {
        alert.group: alert
        for alert in sorted(standing, key=lambda alert: alert.last_at)
        if alert.is_open and now - alert.last_at <= JOINS_WITHIN
    }
    new: dict[str, list[Firing]] = defaultdict(list)
    joining: dict[UUID, list[Firing]] = defaultdict(list)
    again: dict[UUID, list[Firing]] = defaultdict(list)
    for key, firing in found.items():
        if key in fires:
            continue
        there = room.get(firing.group)
        if key in home:
            again[home[key]].append(firing)
        elif there is None:
            new[firing.group].append(firing)
        else:
            (again if key in there.keys else joining)[there.id].append(firing)
    over = {
        alert.id: over_now
        for alert in standing
        if (
            over_now := [
                key
                for key, at in alert.keys.items()
                if at is None and key not in found and not key.startswith(tuple(silent))
            ]
        )
    }
    return Plan(new=list(new.values()), joining=dict(joining), again=dict(again), over=over)
