"""Remaining limits of a tenant and of its people over time: runs give back, reservations take."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from datetime import datetime, timedelta
from math import floor
from operator import itemgetter
from typing import Any
from uuid import UUID

from .state import PersonUse, PoolState, TenantQuota, Waiting
from .timeline import FOREVER, EndsOf, after, still_to_come

# Units of this pool, CPU, memory, workspaces. In Left, None is no limit.
Amounts = tuple[int, int, int, int]
Left = tuple[int | None, int | None, int | None, int | None]
NAMES = ("gpus", "cpu", "memory", "workspaces")


def asked_by(claim: Waiting) -> Amounts:
    """Return what all members of the claim ask for together."""
    need, members = claim.need, claim.members
    return (
        claim.units,
        need.cpu_millicores * members,
        need.memory_mib * members,
        int(claim.is_workspace),
    )


def left_of_tenant(quota: TenantQuota) -> Left:
    used, limits = quota.used, quota.limits
    return (
        _less(quota.limit_units, quota.used_units),
        _less(limits.cpu_millicores, used.cpu_millicores),
        _less(limits.memory_mib, used.memory_mib),
        _less(limits.workspaces, used.workspaces),
    )


def left_of_person(person: PersonUse, units_per_gpu: int) -> Left:
    most = person.most_gpus
    units = None if most is None else floor((most - person.gpus) * units_per_gpu)
    return units, None, None, _less(person.most_workspaces, person.workspaces)


def _less(limit: int | None, used: int | None) -> int | None:
    return None if limit is None else limit - (used or 0)


class Share:
    """Remaining limits of a tenant or a person over time."""

    def __init__(self, left: Left, now: datetime, user: Any = None) -> None:
        self.now = now
        self.user = user
        # Limits that an earlier claim waits for.
        self.closed: set[int] = set()
        self.limited = [at for at, amount in enumerate(left) if amount is not None]
        self._left = [0 if amount is None else amount for amount in left]
        # Remainder with all later reservations taken off at once: a bound that settles most requests.
        self._least = list(self._left)
        self._events: list[tuple[datetime, Amounts]] = []

    def left(self, number: int) -> int:
        return self._left[number]

    def broken(self, asked: Amounts) -> set[int]:
        """Return the numbers of the limits that the request would exceed now."""
        return self._broken(self._left, asked)

    def promised(self, asked: Amounts, until: datetime) -> set[int]:
        """Return the limits on which the request would take what an earlier claim waits for, or needs by `until`."""
        found = {at for at in self.closed if asked[at]}
        if not self._broken(self._least, asked):
            return found
        left = list(self._left)
        for time, amounts in self._events:
            if time >= until:
                break
            for at in self.limited:
                left[at] += amounts[at]
                if asked[at] and asked[at] > left[at]:
                    found.add(at)
        return found

    def earliest(self, asked: Amounts, lasts: timedelta | None, not_before: datetime) -> datetime:
        """Return the first time from which the limits allow the request for `lasts`; FOREVER if unknown."""
        left = list(self._left)
        start: datetime | None = not_before if not self._broken(left, asked) else None
        for time, amounts in self._events:
            left = [have + amount for have, amount in zip(left, amounts, strict=True)]
            if not self._broken(left, asked):
                start = start or max(time, not_before)
            elif start is not None:
                if time >= after(start, lasts):
                    return start
                start = None
        return start or FOREVER

    def ends(self, amounts: Amounts, time: datetime) -> None:
        if self.limited and time != FOREVER:
            insort(self._events, (time, amounts), key=itemgetter(0))

    def keep(self, asked: Amounts, start: datetime, until: datetime) -> None:
        if not self.limited:
            return
        minus = tuple(-amount for amount in asked)
        self._least = [have - amount for have, amount in zip(self._least, asked, strict=True)]
        if start <= self.now:
            self._left = [have - amount for have, amount in zip(self._left, asked, strict=True)]
        elif start != FOREVER:
            insort(self._events, (start, minus), key=itemgetter(0))  # type: ignore[misc]
        self.ends(asked, until)

    def _broken(self, left: list[int], asked: Amounts) -> set[int]:
        return {at for at in self.limited if asked[at] and asked[at] > left[at]}


class Shares:
    """Remaining limits of all tenants of a pool, and of their people who wait."""

    def __init__(self, state: PoolState, ends_of: EndsOf) -> None:
        now, per_gpu = state.now, state.units_per_gpu
        self.tenants = {key: Share(left_of_tenant(quota), now) for key, quota in state.tenants.items()}
        self.people: dict[tuple[UUID, Any], Share] = {
            (tenant, user): Share(left_of_person(person, per_gpu), now, user)
            for tenant, quota in state.tenants.items()
            for user, person in quota.people.items()
        }
        for run in (run for node in state.nodes for run in node.runs):
            end, takes = ends_of(run), run.takes
            if end is None:
                continue
            units = takes.units if run.in_pool else 0
            amounts = units, takes.cpu_millicores, takes.memory_mib, int(run.is_workspace)
            for share in (self.tenants.get(run.tenant), self.people.get((run.tenant, run.user))):
                if share is not None:
                    share.ends(amounts, still_to_come(end, now))

    def of(self, claim: Waiting) -> Iterable[Share]:
        yield self.tenants[claim.tenant]
        person = self.people.get((claim.tenant, claim.user))
        if person is not None:
            yield person

    def keep(self, claim: Waiting, start: datetime, until: datetime) -> None:
        for share in self.of(claim):
            share.keep(asked_by(claim), start, until)

    def earliest(self, claim: Waiting, not_before: datetime) -> datetime:
        """Return the first time at which all limits allow the claim; FOREVER if unknown."""
        start = not_before
        while True:
            found = max(share.earliest(asked_by(claim), claim.lasts, start) for share in self.of(claim))
            if found in (start, FOREVER):
                return found
            start = found
