"""Requests to the pools of a trace: plain values, and how runs of a kind are generated.

The model. A kind of work requests units of one pool, in a cycle of days and hours, sometimes several at once (a
sweep). The length of a run is log-normal; all lengths of a pool are then scaled so that the requested work is the
stated part of what the pool could do in that time. People who give a lifetime give 1.2 to 3 times what the run needs,
in whole hours, at most three days. Other runs (mostly notebooks) end when they are stopped, at an unknown time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log
from random import Random
from typing import Any
from uuid import UUID

HOUR = 3600.0
DAY = 24 * HOUR
LONGEST_HOURS = 72
PEOPLE_EACH = 8
# Weights of when work begins: by day from Monday to Sunday, and by hour from midnight.
WEEK = (1.0, 1.1, 1.1, 1.0, 0.9, 0.35, 0.3)
OFFICE_HOURS = (2, 1, 1, 1, 1, 1, 2, 4, 8, 12, 13, 12, 9, 11, 13, 13, 12, 11, 9, 7, 6, 5, 4, 3)


@dataclass(frozen=True)
class Job:
    """Request for units for as long as the work needs; `at` is in seconds from the beginning."""

    number: int
    tenant: UUID
    user: int
    at: float
    units: int
    seconds: float
    asked_minutes: int | None


@dataclass(frozen=True)
class Quota:
    """Quota of a tenant, in units of the pool."""

    nominal: int
    may_borrow: int
    weight: int = 1


@dataclass(frozen=True)
class Outage:
    node: int
    begins: float
    ends: float


@dataclass(frozen=True)
class Booking:
    tenant: UUID
    made_at: float
    begins: float
    ends: float
    places: int
    units_each: int


@dataclass(frozen=True)
class Pool:
    name: str
    nodes: int
    units_each: int
    units_per_gpu: int
    quotas: Mapping[UUID, Quota]
    jobs: tuple[Job, ...] = ()
    bookings: tuple[Booking, ...] = ()
    outages: tuple[Outage, ...] = ()

    @property
    def units(self) -> int:
        return self.nodes * self.units_each


@dataclass(frozen=True)
class Trace:
    name: str
    tenants: Mapping[UUID, str]
    pools: tuple[Pool, ...]
    days: int


@dataclass(frozen=True)
class Kind:
    """Work of one kind: number of runs, weights of tenants and of sizes, and lengths."""

    runs: int
    tenants: Mapping[UUID, float]
    units: Mapping[int, float]
    median_hours: float
    spread: float = 1.2
    gives_lifetime: float = 0.5
    sweeps: float = 0.08  # part of the runs that begin a sweep
    most_in_sweep: int = 8
    days: Sequence[float] = WEEK * 3
    hours: Sequence[float] = OFFICE_HOURS


def made(random: Random, pool: Pool, kinds: Sequence[Kind], *, load: float, days: int) -> Pool:
    """Return the pool with runs of these kinds, which together request `load` of it over these days."""
    asked = [one for kind in kinds for one in _of_kind(random, kind)]
    wanted = load * pool.units * days * DAY
    scale = 1.0
    for _step in range(20):  # shorter runs make up for what is cut off the longest
        scale *= wanted / sum(one.units * _cut(one.seconds * scale) for one in asked)
    jobs = sorted((replace(one, seconds=_cut(one.seconds * scale)) for one in asked), key=lambda one: one.at)
    return replace(pool, jobs=tuple(_with_lifetime(random, one, at) for at, one in enumerate(jobs, 1)))


def _cut(seconds: float) -> float:
    return min(max(seconds, 60.0), LONGEST_HOURS * HOUR)


def _with_lifetime(random: Random, job: Job, number: int) -> Job:
    asked = None
    if job.asked_minutes:
        asked = 60 * min(ceil(job.seconds * random.uniform(1.2, 3) / HOUR), LONGEST_HOURS)
    return replace(job, number=number, asked_minutes=asked)


def _of_kind(random: Random, kind: Kind) -> list[Job]:
    jobs: list[Job] = []
    while len(jobs) < kind.runs:
        tenant = _one_of(random, kind.tenants)
        person = int(random.betavariate(1, 2) * PEOPLE_EACH)  # some people launch more often than others
        user = tenant.int * 100 + person
        units = _one_of(random, kind.units)
        at = _moment(random, kind)
        gives = random.random() < kind.gives_lifetime
        many = random.randint(2, kind.most_in_sweep) if random.random() < kind.sweeps else 1
        for _one in range(min(many, kind.runs - len(jobs))):
            seconds = random.lognormvariate(log(kind.median_hours * HOUR), kind.spread)
            jobs.append(Job(0, tenant, user, at, units, seconds, 1 if gives else None))
            at += random.uniform(1, 60)
    return jobs


def _moment(random: Random, kind: Kind) -> float:
    day = random.choices(range(len(kind.days)), kind.days)[0]
    hour = random.choices(range(24), kind.hours)[0]
    return day * DAY + (hour + random.random()) * HOUR


def _one_of(random: Random, choice: Mapping[Any, float]) -> Any:
    return random.choices(list(choice), list(choice.values()))[0]
