"""Simulation of one pool: time moves from event to event, each followed by a pass of the queue.

The simulation assumes: a run is ready two minutes after admission, and its end is proven a minute after it ends. Work
is saved each hour. A preempted run goes on until the grace is over (nobody heeds the warning), loses its unsaved work,
and waits again with the rest; so does a run on a node that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from uuid import UUID

from quotas.scheduling import RECLAIM_GRACE, Booked, NodeState, PoolState, Room, Run, TenantQuota, Waiting
from tests.bench.simulator.foretold import Teller
from tests.bench.simulator.meter import Meter
from tests.bench.simulator.policies import Policy
from tests.bench.simulator.trace import DAY, HOUR, Job, Outage, Pool

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)  # a Monday
STARTING, LETTING_GO = 120.0, 60.0
SAVES_EVERY = HOUR
# As in `quotas/pool_state.py` and `quotas/allowed/usage.py`, which need a database.
START_MARGIN = timedelta(minutes=15)
HALF_LIFE_DAYS = 7
PODS = 110


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


@dataclass
class Work:
    """Job, and how much of it is still to be done."""

    job: Job
    left_seconds: float
    asked: Waiting
    waits_since: float
    waited: float = 0.0
    within_own: bool = False
    first_start: float = inf
    reclaims: int = 0
    lost_seconds: float = 0.0
    ended: float = inf


@dataclass
class Going:
    """Current run of a piece of work."""

    work: Work
    run: Run
    node: str
    admitted: float
    ends: float
    is_stopped: bool = False


class Simulation:
    def __init__(self, pool: Pool, policy: Policy, teller: Teller | None = None) -> None:
        self.pool, self.policy, self.teller = pool, policy, teller
        self.now = 0.0
        self.work = [self._work(job) for job in pool.jobs]
        self.waiting: dict[UUID, Work] = {}
        self.going: dict[UUID, Going] = {}
        self.used = dict.fromkeys(pool.quotas, 0)
        self.past_use = dict.fromkeys(pool.quotas, 0.0)
        self.meter = Meter(pool)
        self.reclaims = 0
        self._whole = Room(pool.units_each, pods=PODS)
        self._on: dict[str, list[Going]] = {f"node-{number:02}": [] for number in range(pool.nodes)}
        self._down: set[str] = set()
        self._states: dict[str, NodeState] = {}
        self._numbers = count(1)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._has_changed = False

    def run(self) -> Simulation:
        """Simulate to the end of the last job."""
        self._begin()
        unfinished = len(self.work)
        while self._events and unfinished:
            then = self._events[0][0]
            self._pass_time(then)
            while self._events and self._events[0][0] <= then:
                heappop(self._events)[-1]()
            if self._has_changed and (self.waiting or self.pool.bookings or self._asked_back()):
                self._decide()
            self._has_changed = False
            self.meter.now_is(self.used, (work.asked for work in self.waiting.values()), self._capacity())
            if not self.waiting and not self.going:
                unfinished = sum(work.ended == inf for work in self.work)
        return self

    # --- Events

    def _begin(self) -> None:
        for work in self.work:
            self._later(work.job.at, partial(self._arrives, work))
        for outage in self.pool.outages:
            self._later(outage.begins, partial(self._fails, outage))
            self._later(outage.ends, partial(self._is_back, outage))
        for booking in self.pool.bookings:
            grace = RECLAIM_GRACE.total_seconds()
            for moment in (booking.made_at, booking.begins - grace, booking.begins, booking.ends):
                self._later(moment, self._changed)

    def _arrives(self, work: Work) -> None:
        job = work.job
        queued = sum(other.job.units for other in self.waiting.values() if other.job.tenant == job.tenant)
        work.within_own = self.used[job.tenant] + queued + job.units <= self.pool.quotas[job.tenant].nominal
        self._waits(work, work.asked)

    def _waits(self, work: Work, asked: Waiting) -> None:
        work.asked, work.waits_since = asked, self.now
        self.waiting[asked.claim] = work
        self._changed()

    def _starts(self, claim: UUID, node: str, booking: UUID | None, must_end_at: datetime | None) -> None:
        work = self.waiting.pop(claim)
        work.waited += self.now - work.waits_since
        work.first_start = min(work.first_start, self.now)
        asked = work.asked
        known_end = at(self.now) + asked.lasts if asked.lasts else None
        ends_at = min((end for end in (known_end, must_end_at) if end), default=None)
        run = Run(claim, asked.tenant, asked.user, asked.need, at(self.now), ends_at, booking=booking)
        going = Going(work, run, node, self.now, self.now + STARTING + work.left_seconds)
        self.going[claim] = going
        self._on[node].append(going)
        self._takes(going, going.run.takes.units)
        if self.teller:
            self.teller.started(claim, at(self.now))
        if ends_at:
            self._later(self.now + STARTING, partial(self._is_ready, going, must_end_at))
        self._later(going.ends, partial(self._is_done, going))

    def _is_ready(self, going: Going, must_end_at: datetime | None) -> None:
        """Start the clock of the run's lifetime."""
        end = at(self.now + (going.work.job.asked_minutes or 0) * 60)
        self._becomes(going, ends_at=min(end, must_end_at) if must_end_at else end)

    def _is_done(self, going: Going) -> None:
        if not going.is_stopped:
            going.is_stopped = True
            going.work.left_seconds = 0.0
            self._later(self.now + LETTING_GO, partial(self._lets_go, going))

    def _is_due(self, going: Going) -> None:
        asked = going.run.reclaim_at
        if going.is_stopped or asked is None or asked > at(self.now):
            return
        going.work.reclaims += 1
        self.reclaims += 1
        self._stop(going)
        self._later(self.now + LETTING_GO, partial(self._lets_go, going))

    def _stop(self, going: Going) -> None:
        """Stop the run in the midst of its work; unsaved work is lost."""
        going.is_stopped = True
        done = max(0.0, self.now - going.admitted - STARTING)
        going.work.left_seconds -= done - done % SAVES_EVERY
        going.work.lost_seconds += self.now - going.admitted - (done - done % SAVES_EVERY)

    def _lets_go(self, going: Going) -> None:
        """Handle the proof of the run's end: free its units, and queue the rest of the work."""
        del self.going[going.run.claim]
        self._on[going.node].remove(going)
        self._takes(going, -going.run.takes.units)
        work = going.work
        if self.teller:
            self.teller.ended(going.run, self.now - going.admitted, work.job.asked_minutes)
        if work.left_seconds:
            was_asked = going.run.reclaim_at is not None
            claim = UUID(int=next(self._numbers) + 1_000_000)
            self._waits(work, replace(work.asked, claim=claim, returns_first=was_asked))
        else:
            work.ended = self.now

    def _fails(self, outage: Outage) -> None:
        name = f"node-{outage.node:02}"
        self._down.add(name)
        for going in list(self._on[name]):
            if not going.is_stopped:
                self._stop(going)
                self._lets_go(going)
        self._changed()

    def _is_back(self, outage: Outage) -> None:
        self._down.discard(f"node-{outage.node:02}")
        self._changed()

    # --- A pass

    def _decide(self) -> None:
        decisions = self.policy(self.state())
        for admitted in decisions.admitted:
            self._starts(admitted.claim, admitted.node, admitted.booking, admitted.must_end_at)
        for reclaim in decisions.reclaims:
            going = self.going[reclaim.run]
            if going.run.reclaim_at is None:
                due = self.now + RECLAIM_GRACE.total_seconds()
                self._becomes(going, reclaim_at=at(due))
                self._later(due, partial(self._is_due, going))
            self._becomes(going, reclaim_for=reclaim.beneficiary)
        for claim in decisions.cancelled:
            if not self.going[claim].is_stopped:
                self._becomes(self.going[claim], reclaim_at=None, reclaim_for=None)
        if self.teller and self.waiting:
            self.teller.tell(self.state, lambda claim: self.going[claim].work.job.asked_minutes)

    def state(self) -> PoolState:
        return PoolState(
            units_per_gpu=self.pool.units_per_gpu,
            nodes=tuple(self._node(name) for name in self._on if name not in self._down),
            waiting=tuple(work.asked for work in self.waiting.values()),
            tenants={tenant: self._quota(tenant) for tenant in self.pool.quotas},
            now=at(self.now),
            bookings=tuple(self._bookings()),
        )

    def _node(self, name: str) -> NodeState:
        if name not in self._states:
            runs = tuple(going.run for going in self._on[name])
            free = self._whole
            for run in runs:
                free -= run.takes
            self._states[name] = NodeState(name, free, self._whole, runs)
        return self._states[name]

    def _quota(self, tenant: UUID) -> TenantQuota:
        quota = self.pool.quotas[tenant]
        return TenantQuota(
            used_units=self.used[tenant],
            limit_units=quota.nominal + quota.may_borrow,
            nominal_units=quota.nominal,
            weight=quota.weight,
            past_use=self.past_use[tenant],
        )

    def _bookings(self) -> Iterator[Booked]:
        for number, one in enumerate(self.pool.bookings, 10_000_000):
            if one.made_at <= self.now < one.ends:
                yield Booked(
                    UUID(int=number), one.tenant, at(one.begins), at(one.ends), one.places, one.units_each
                )

    # --- Helpers

    def _work(self, job: Job) -> Work:
        asked = Waiting(
            UUID(int=job.number),
            job.tenant,
            Room(job.units, pods=1),
            priority=0,
            place=job.number,
            user=job.user,
            lasts=timedelta(minutes=job.asked_minutes) + START_MARGIN if job.asked_minutes else None,
        )
        return Work(job, job.seconds, asked, job.at)

    def _becomes(self, going: Going, **changes: object) -> None:
        if going.run.claim in self.going:
            going.run = replace(going.run, **changes)  # type: ignore[arg-type]
            self._states.pop(going.node, None)
            self._changed()

    def _takes(self, going: Going, units: int) -> None:
        self.used[going.run.tenant] += units
        self._states.pop(going.node, None)
        self._changed()

    def _changed(self) -> None:
        self._has_changed = True

    def _later(self, moment: float, action: Callable[[], None]) -> None:
        heappush(self._events, (max(moment, self.now), next(self._numbers), action))

    def _asked_back(self) -> bool:
        return any(going.run.reclaim_at for going in self.going.values())

    def _capacity(self) -> int:
        return (self.pool.nodes - len(self._down)) * self.pool.units_each

    def _pass_time(self, then: float) -> None:
        """Advance the clock, and count past use as the ledger does: by days, older days with less weight."""
        self.meter.until(then)
        while self.now < then:
            until = min(then, (self.now // DAY + 1) * DAY)
            for tenant, units in self.used.items():
                self.past_use[tenant] += units / self.pool.units_per_gpu * (until - self.now)
                if until % DAY == 0:
                    self.past_use[tenant] *= 0.5 ** (1 / HALF_LIFE_DAYS)
            self.now = until
