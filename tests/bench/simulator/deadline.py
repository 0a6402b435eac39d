"""Two weeks before a deadline: bursts, many small borrowed runs, a class with bookings, nodes that fail.

It has the 8 tenants and 200 GPUs of `everyday.py`. On the A100 all other tenants borrow for small runs for nine days,
mostly without a lifetime. Then the tenant language, which was idle, needs its own share for runs of whole nodes, again
and again until the deadline. On weekdays from 10 to 14 a class of the tenant teaching has 24 L40S booked, three days
ahead, and its people start with the class. An A100 node and a T4 node fail for a day, each during a weekday.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from uuid import UUID

from .everyday import A100, L40S, NAMES, SLICES, T4, TENANTS
from .trace import DAY, HOUR, WEEK, Booking, Job, Kind, Outage, Pool, Trace, made

DAYS = 14
LOAD = 0.85
BY_NAME = dict(zip(NAMES, TENANTS, strict=True))
LANGUAGE, TEACHING = BY_NAME["language"], BY_NAME["teaching"]
CLASS_GPUS = 24


def deadline(seed: int = 1) -> Trace:
    random = Random(seed)
    small = Kind(
        4_300, _others(LANGUAGE), {1: 0.7, 2: 0.3}, 3, gives_lifetime=0.3, sweeps=0.15, days=WEEK * 2
    )
    burst = Kind(200, {LANGUAGE: 1}, {8: 1}, 3, 0.8, sweeps=0.3, most_in_sweep=6, days=(0,) * 9 + (1,) * 5)
    medium = Kind(2_300, _others(TEACHING), {1: 0.5, 2: 0.35, 4: 0.15}, 3, days=WEEK * 2)
    slices = Kind(2_960, dict.fromkeys(TENANTS, 1), SLICES, 4, gives_lifetime=0.3, days=WEEK * 2)
    a100 = replace(A100, outages=(Outage(3, 9.5 * DAY, 10.5 * DAY),))
    t4 = replace(T4, outages=(Outage(0, 2.4 * DAY, 3.4 * DAY),))
    pools = (
        made(random, a100, [small, burst], load=LOAD, days=DAYS),
        _with_class(random, made(random, L40S, [medium], load=LOAD - 0.05, days=DAYS)),
        made(random, t4, [slices], load=LOAD, days=DAYS),
    )
    return Trace("deadline", TENANTS, pools, DAYS)


def _others(but: UUID) -> dict[UUID, float]:
    return {tenant: 1.0 for tenant in TENANTS if tenant != but}


def _with_class(random: Random, pool: Pool) -> Pool:
    begins = [day * DAY + 10 * HOUR for day in range(DAYS) if day % 7 < 5]
    bookings = tuple(
        Booking(TEACHING, max(0.0, begin - 3 * DAY), begin, begin + 4 * HOUR, CLASS_GPUS, 1)
        for begin in begins
    )
    jobs = sorted([*pool.jobs, *_in_class(random, begins)], key=lambda job: job.at)
    numbered = tuple(replace(job, number=number) for number, job in enumerate(jobs, 1))
    return replace(pool, jobs=numbered, bookings=bookings)


def _in_class(random: Random, begins: list[float]) -> Iterator[Job]:
    for begin in begins:
        for person in range(CLASS_GPUS):
            at = begin + random.uniform(0, 0.4) * HOUR
            seconds = random.uniform(0.5, 2.9) * HOUR
            yield Job(0, TEACHING, TEACHING.int * 100 + 50 + person, at, 1, seconds, 180)
