"""Which firings belong to which alert. Pure: values in, a plan out.

A firing that was a member of an alert belongs to it as long as the alert is open, and for a while after: what flaps is
one alert. Others of one group (same code, cluster and tenant) that begin one soon after another become one alert: a
dead switch is one alert and not forty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from monitoring.alerts.firing import Firing

JOINS_WITHIN = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """An alert that a firing may belong to. `keys`: its members, by key, and whether each fires at present."""

    id: UUID
    group: str
    last_at: datetime
    is_open: bool
    keys: Mapping[str, bool]


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
    home = {key: alert.id for alert in standing if not alert.is_open for key in alert.keys}
    home |= {key: alert.id for alert in standing if alert.is_open for key in alert.keys}
    fires = {key for alert in standing for key, is_firing in alert.keys.items() if is_firing}
    room = {
        alert.group: alert.id
        for alert in sorted(standing, key=lambda alert: alert.last_at)
        if alert.is_open and now - alert.last_at <= JOINS_WITHIN
    }
    new, joining, again = defaultdict(list), defaultdict(list), defaultdict(list)
    for key, firing in found.items():
        if key in fires:
            continue
        if key in home:
            again[home[key]].append(firing)
        elif firing.group in room:
            joining[room[firing.group]].append(firing)
        else:
            new[firing.group].append(firing)
    over = {
        alert.id: ended
        for alert in standing
        if (
            ended := [
                key
                for key, is_firing in alert.keys.items()
                if is_firing and key not in found and not key.startswith(tuple(silent))
            ]
        )
    }
    return Plan(new=list(new.values()), joining=dict(joining), again=dict(again), over=over)
