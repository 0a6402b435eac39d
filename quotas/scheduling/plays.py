"""Simulation of one future of a pool: which claim starts when, if each run ends as given. Pure, and quick.

A simulation follows the rules of the queue as a pass does, in the present order and without new claims. Room is
counted in units, CPU and memory of whole nodes. The pass has decided by finer rules what starts at this moment, so
nothing starts here before something happens. A forecast simulates many such futures (`forecast.py`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from heapq import heapify, heappop, heappush, merge
from math import inf
from typing import Any
from uuid import UUID

from .state import Limits, PersonUse, PoolState, Room, Run, TenantQuota, Waiting

Account = tuple[int, Fraction | int]  # a limit by its number, and how much of it is taken
Takes = tuple[int, int, int]  # units, CPU, memory
# Time, a number to order equal times, node (-1: any), what comes free, limits that it frees, and its known end.
Event = tuple[float, int, int, Takes, tuple[Account, ...], float]
NOTHING: Takes = (0, 0, 0)
LATER = 1_000_000
LET_GO_SECONDS = 60.0  # from the end of a run to the proof of it


@dataclass(frozen=True)
class Asks:
    """A simulated claim: what it takes, its longest duration and its earliest start; seconds from now."""

    tenant: UUID
    units: int
    cpu: int
    memory: int
    accounts: tuple[Account, ...]
    most_seconds: float
    not_before: float


@dataclass(frozen=True)
class Holds:
    """A simulated run."""

    node: int
    takes: Takes
    accounts: tuple[Account, ...]
    most_seconds: float


@dataclass(frozen=True)
class Kept:
    """Units of a node that a booking keeps for its tenant."""

    tenant: UUID
    starts: float
    ends: float
    units: int


class Ground:
    """Initial state of all simulated futures of a pool."""

    def __init__(self, state: PoolState, queue: Sequence[Waiting]) -> None:
        self.now = state.now
        self._limits = _Limits(state)
        self.limits, self.used = self._limits.most, self._limits.used
        self.free = [list(_figures(node.free)) for node in state.nodes]
        self.runs = [self._holds(run, at) for at, node in enumerate(state.nodes) for run in node.runs]
        self.asks = [self._asks(claim) for claim in queue]
        self.kept = self._kept(state)
        self.smallest = min((asks.units for asks in self.asks), default=0)
        self.whole = [node.without_ours.units for node in state.nodes]
        self.places = self._places()
        self.by_room = sorted(range(len(self.free)), key=lambda node: -self.free[node][0])
        self.wakes = [(asks.not_before, -1) for asks in self.asks if asks.not_before]
        for at, kept in enumerate(self.kept):
            self.wakes += [(moment, at) for one in kept for moment in (one.starts, one.ends)]

    def _places(self) -> list[int]:
        """Return the node on which each claim reserves room at first. The queue has none that no node could hold."""
        left = [figures[0] for figures in self.free]
        places = []
        for asks in self.asks:
            node = least_lacking(left, self.whole, asks.units)
            assert node is not None
            left[node] -= asks.units
            places.append(node)
        return places

    def _asks(self, claim: Waiting) -> Asks:
        most = claim.lasts.total_seconds() if claim.lasts else inf
        need, accounts = claim.need, self._limits.of(claim)
        not_before = self._from_now(claim.not_before)
        return Asks(
            claim.tenant, need.units, need.cpu_millicores, need.memory_mib, accounts, most, not_before
        )

    def _holds(self, run: Run, node: int) -> Holds:
        accounts = self._limits.of(run) if run.in_pool else ()
        return Holds(node, _figures(run.takes), accounts, most_seconds(run, self.now))

    def _from_now(self, moment: datetime | None) -> float:
        return 0.0 if moment is None else _seconds(self.now, moment)

    def _kept(self, state: PoolState) -> list[list[Kept]]:
        """Return booked places by node, each on the node with the most room left."""
        kept: list[list[Kept]] = [[] for _ in state.nodes]
        left = [node.without_ours.units for node in state.nodes]
        for booked in state.bookings:
            starts, ends = self._from_now(booked.starts_at), self._from_now(booked.ends_at)
            for _ in range(booked.places if left else 0):
                at = max(range(len(left)), key=left.__getitem__)
                left[at] -= booked.units_each
                kept[at].append(Kept(booked.tenant, starts, ends, booked.units_each))
        return kept


def most_seconds(run: Run, now: datetime) -> float:
    """Return the longest time, in seconds, for which a run can hold its units."""
    ends = [moment for moment in (run.ends_at, run.reclaim_at) if moment is not None]
    return _seconds(now, min(ends)) + LET_GO_SECONDS if ends else inf


def _seconds(now: datetime, moment: datetime) -> float:
    return max(0.0, (moment - now).total_seconds())


def _figures(room: Room) -> Takes:
    return room.units, room.cpu_millicores, room.memory_mib


class _Limits:
    """Limits of tenants and people as one list: the amount used and the most of each."""

    def __init__(self, state: PoolState) -> None:
        self.most: list[Any] = []
        self.used: list[Any] = []
        # By owner, which is a tenant or a person in it, and by name.
        self._numbers: defaultdict[Hashable, dict[str, int]] = defaultdict(dict)
        self._per_gpu = state.units_per_gpu
        for tenant, quota in state.tenants.items():
            for name, used, most in _of_tenant(quota):
                self._add((tenant,), name, used, most)
            for user, use in quota.people.items():
                for name, used, most in _of_person(use):
                    self._add((tenant, user), name, used, most)

    def _add(self, owner: Hashable, name: str, used: Any, most: Any) -> None:
        if most is not None:
            self._numbers[owner][name] = len(self.most)
            self.most.append(most)
            self.used.append(used or 0)

    def of(self, one: Waiting | Run) -> tuple[Account, ...]:
        """Return the limits that a claim or run uses, with amounts. A limit of which it takes nothing is left out."""
        takes = one.need if isinstance(one, Waiting) else one.takes
        is_workspace = int(one.is_workspace)
        of_tenant: dict[str, Fraction | int] = {
            "units": takes.units,
            "cpu": takes.cpu_millicores,
            "memory": takes.memory_mib,
            "workspaces": is_workspace,
        }
        gpus = Fraction(takes.units, self._per_gpu)
        of_person: dict[str, Fraction | int] = {"gpus": gpus, "workspaces": is_workspace}
        owners = (((one.tenant,), of_tenant), ((one.tenant, one.user), of_person))
        return tuple(
            (number, amounts[name])
            for owner, amounts in owners
            for name, number in self._numbers.get(owner, {}).items()
            if amounts[name]
        )


def _of_tenant(quota: TenantQuota) -> Iterator[tuple[str, int | None, int | None]]:
    used, limits = quota.used, quota.limits
    assert isinstance(limits, Limits)
    yield "units", quota.used_units, quota.limit_units
    yield "cpu", used.cpu_millicores, limits.cpu_millicores
    yield "memory", used.memory_mib, limits.memory_mib
    yield "workspaces", used.workspaces, limits.workspaces


def _of_person(use: PersonUse) -> Iterator[tuple[str, Any, Any]]:
    yield "gpus", use.gpus, use.most_gpus
    yield "workspaces", use.workspaces, use.most_workspaces


def least_lacking(left: Sequence[int], whole: Sequence[int], units: int) -> int | None:
    """Return the node that lacks least for so many units, among those that could hold them; None: none could."""
    return max(
        (node for node in range(len(whole)) if whole[node] >= units), key=left.__getitem__, default=None
    )


def play(
    ground: Ground, ends: Sequence[float], lasts: Sequence[float], asked: int | None = None
) -> list[float]:
    """Return when each claim of the queue starts, in seconds from now (inf: never).

    `ends` and `lasts` are assumed for runs and claims. `asked`: simulate only until the claim of this number starts.
    """
    future = _Future(ground, lasts)
    future.begin(ends)
    while future.events and (future.place or future.parked):
        if asked is not None and future.starts[asked] < inf:
            break
        future.next()
    return future.starts


class _Future:
    def __init__(self, ground: Ground, lasts: Sequence[float]) -> None:
        self.ground = ground
        self.lasts = lasts
        self.free = [figures[:] for figures in ground.free]
        self.used = ground.used[:]
        self.starts = [inf] * len(ground.asks)
        # Claims that wait for room, in order, by the units asked for; each reserves room on one node.
        self.line: defaultdict[int, list[int]] = defaultdict(list)
        self.place: dict[int, int] = {}
        self.keepers: list[list[int]] = [[] for _ in self.free]
        # Units left of each node if all reservations there were filled.
        self.left = [figures[0] for figures in self.free]
        # Claims that wait for a limit, by its number. They reserve nothing, and hold back later claims on that limit.
        self.parked: dict[int, list[int]] = {}
        # By node, the latest known ends and their units.
        self.known: list[list[tuple[float, int]]] = [[] for _ in self.free]
        self.events: list[Event] = []

    def begin(self, ends: Sequence[float]) -> None:
        for holds, end in zip(self.ground.runs, ends, strict=True):
            self.known[holds.node].append((holds.most_seconds, holds.takes[0]))
            self.events.append(
                (end, len(self.events), holds.node, holds.takes, holds.accounts, holds.most_seconds)
            )
        for moment, node in self.ground.wakes:
            self.events.append((moment, len(self.events), node, NOTHING, (), inf))
        heapify(self.events)
        for one, node in enumerate(self.ground.places):
            self._keep(one, node)

    def next(self) -> None:
        now, _number, node, takes, accounts, known = heappop(self.events)
        if takes is not NOTHING:
            free = self.free[node]
            for at, taken in enumerate(takes):
                free[at] += taken
            self.left[node] += takes[0]
            self.known[node].remove((known, takes[0]))
        came_back = False
        for number, amount in accounts:
            self.used[number] -= amount
            came_back |= number in self.parked and self._unpark(number)
        if not self.place:  # nobody waits for room
            return
        if came_back or node < 0:
            self._offer_all(now)
        else:
            self._offer(node, now)

    # --- The queue

    def _join(self, one: int) -> None:
        node = least_lacking(self.left, self.ground.whole, self.ground.asks[one].units)
        if node is not None:
            self._keep(one, node)

    def _keep(self, one: int, node: int) -> None:
        units = self.ground.asks[one].units
        self.left[node] -= units
        self.place[one] = node
        insort(self.keepers[node], one)
        insort(self.line[units], one)

    def _leave(self, one: int) -> int:
        """Take the claim out of the line for room. Return the node where it had reserved some."""
        units, node = self.ground.asks[one].units, self.place.pop(one)
        line, keepers = self.line[units], self.keepers[node]
        del line[bisect_left(line, one)]
        del keepers[bisect_left(keepers, one)]
        self.left[node] += units
        return node

    def _parks(self, one: int) -> bool:
        """Return True if a limit is full; then it and later claims on that limit wait for the limit."""
        for number, amount in self.ground.asks[one].accounts:
            if self.used[number] + amount > self.ground.limits[number]:
                same = [other for other in self.place if other >= one and self._amount(other, number)]
                for other in same:
                    self._leave(other)
                self.parked[number] = sorted([*self.parked.get(number, ()), *same])
                return True
        return False

    def _unpark(self, number: int) -> bool:
        """Let claims wait for room again, in order, as the limit allows. Return True if any did."""
        parked = self.parked.pop(number)
        left = self.ground.limits[number] - self.used[number]
        back = 0
        for one in parked:
            left = left - self._amount(one, number)
            if left < 0:
                break
            self._join(one)
            back += 1
        if parked[back:]:
            self.parked[number] = parked[back:]
        return back > 0

    def _amount(self, one: int, number: int) -> Fraction | int:
        accounts = self.ground.asks[one].accounts
        return next((amount for account, amount in accounts if account == number), 0)

    # --- Starts

    def _offer_all(self, now: float) -> None:
        for node in self.ground.by_room:
            if self.free[node][0] >= self.ground.smallest:
                self._offer(node, now)

    def _offer(self, node: int, now: float) -> None:
        """Start on this node every claim that may, in order."""
        while (one := self._next_on(node, now)) is not None:
            self._start(one, node, now)

    def _next_on(self, node: int, now: float) -> int | None:
        """Return the first claim that fits beside the node's earlier reservations, or ends before they need it."""
        one = self._first_on(node, now)
        while one is not None and self._parks(one):
            one = self._first_on(node, now)
        return one

    def _first_on(self, node: int, now: float) -> int | None:
        """Return the same claim as `_next_on`, whether a limit allows it or not."""
        units, cpu, memory = self.free[node]
        keepers = iter(self.keepers[node])
        keeper, kept, due = next(keepers, None), 0, inf
        for one in merge(*(line for size, line in self.line.items() if size <= units)):
            while keeper is not None and keeper < one:
                kept += self.ground.asks[keeper].units
                due = min(due, self._due(node, keeper))
                keeper = next(keepers, None)
            if units - kept < self.ground.smallest and not due:
                return None
            asks = self.ground.asks[one]
            if asks.units > units - kept and now + asks.most_seconds > due:
                continue
            if asks.not_before > now or asks.cpu > cpu or asks.memory > memory:
                continue
            if self._is_not_kept(asks, node, now):
                return one
        return None

    def _is_not_kept(self, asks: Asks, node: int, now: float) -> bool:
        """Return True if others' bookings leave it room, or it is certain to end before they begin."""
        until = now + asks.most_seconds
        kept = sum(
            one.units
            for one in self.ground.kept[node]
            if one.tenant != asks.tenant and now < one.ends and until > one.starts
        )
        return asks.units <= self.free[node][0] - kept

    def _due(self, node: int, keeper: int) -> float:
        """Return the time at which the reserving claim is certain to fit; 0 if unknown."""
        lacking = self.ground.asks[keeper].units - self.free[node][0]
        for end, units in sorted(self.known[node]):
            lacking -= units
            if lacking <= 0:
                return end if end < inf else 0.0
        return 0.0

    def _start(self, one: int, node: int, now: float) -> None:
        self.starts[one] = now
        asks = self.ground.asks[one]
        takes = (asks.units, asks.cpu, asks.memory)
        free = self.free[node]
        for at, taken in enumerate(takes):
            free[at] -= taken
        for number, amount in asks.accounts:
            self.used[number] += amount
        self.left[node] -= asks.units
        place = self._leave(one)
        if place != node:  # others may have it
            heappush(self.events, (now, -one - 1, place, NOTHING, (), inf))
        known = now + asks.most_seconds
        self.known[node].append((known, asks.units))
        end = now + min(self.lasts[one], asks.most_seconds)
        heappush(self.events, (end, LATER + one, node, takes, asks.accounts, known))
