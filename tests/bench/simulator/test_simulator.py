"""The simulator of traces, on traces of an hour: it does what Berth does."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from uuid import UUID

from quotas import forecasts, pool_state
from quotas.allowed import usage
from quotas.scheduling import Decisions, PoolState, decide
from tests.bench.simulator import engine, foretold
from tests.bench.simulator.engine import LETTING_GO, STARTING, Simulation
from tests.bench.simulator.figures import jain
from tests.bench.simulator.meter import fair_parts
from tests.bench.simulator.policies import Policy, fifo, fifo_with_fixed_quotas
from tests.bench.simulator.trace import HOUR, Booking, Job, Kind, Outage, Pool, Quota, made

RED, BLUE = UUID(int=1), UUID(int=2)
MINUTE = 60.0


def pool(*jobs: Job, nodes: int = 1, nominal: int = 2, **values: object) -> Pool:
    quotas = {tenant: Quota(nominal, may_borrow=8) for tenant in (RED, BLUE)}
    return Pool("made", nodes, 4, 1, quotas, jobs, **values)  # type: ignore[arg-type]


def jobs(*asked: tuple[UUID, float, int, float, int | None]) -> list[Job]:
    """Make jobs from tenant, start (minute), GPUs, length (minutes) and lifetime (minutes)."""
    return [
        Job(number, tenant, 1, at * MINUTE, units, minutes * MINUTE, lifetime)
        for number, (tenant, at, units, minutes, lifetime) in enumerate(asked, 1)
    ]


def waited(simulation: Simulation) -> list[float]:
    """Return the waiting times in whole minutes."""
    return [work.waited // MINUTE for work in simulation.work]


def replayed(policy: Policy, asked: list[Job], **values: object) -> Simulation:
    return Simulation(pool(*asked, **values), policy).run()  # type: ignore[arg-type]


def test_one_alone_starts_at_once_and_takes_as_long_as_it_needs() -> None:
    work = replayed(decide, jobs((RED, 5, 4, 30, None))).work[0]
    assert work.waited == 0
    assert work.ended == 35 * MINUTE + STARTING + LETTING_GO


def test_a_short_one_passes_a_large_one_only_where_the_rules_let_it() -> None:
    asked = jobs((RED, 0, 3, 120, 120), (RED, 1, 4, 60, 60), (RED, 2, 1, 30, 30), (RED, 3, 1, 30, None))
    small, endless = 2, 3
    assert waited(replayed(decide, asked, nominal=8))[small] == 0
    assert waited(replayed(decide, asked, nominal=8))[endless] > 60
    assert min(waited(replayed(fifo, asked, nominal=8))[1:]) > 60


def test_fixed_quotas_leave_idle_what_others_could_use() -> None:
    asked = jobs((RED, 0, 2, 60, None), (RED, 1, 2, 60, None))
    assert waited(replayed(fifo_with_fixed_quotas, asked))[1] > 50
    assert waited(replayed(decide, asked))[1] == 0


def test_a_borrower_is_asked_back_loses_what_was_not_saved_and_waits_again() -> None:
    asked = jobs((RED, 0, 2, 300, None), (RED, 1, 2, 300, None), (BLUE, 93, 2, 20, None))
    simulation = replayed(decide, asked)
    borrower, owner = simulation.work[1], simulation.work[2]
    assert simulation.reclaims == borrower.reclaims == 1
    assert owner.waited == 10 * MINUTE + LETTING_GO
    # It had been ready for 100 minutes, of which an hour was saved.
    assert borrower.lost_seconds == 40 * MINUTE + STARTING
    assert borrower.ended > borrower.job.at + borrower.job.seconds + borrower.lost_seconds + borrower.waited


def test_a_node_that_fails_sends_its_runs_back_to_their_place() -> None:
    simulation = replayed(decide, jobs((RED, 0, 2, 30, None)), outages=(Outage(0, 10 * MINUTE, 70 * MINUTE),))
    assert waited(simulation) == [60]
    assert simulation.work[0].lost_seconds == 10 * MINUTE


def test_a_class_finds_its_places_free_and_fifo_knows_of_no_bookings() -> None:
    booking = Booking(BLUE, 0, HOUR, 3 * HOUR, places=2, units_each=1)
    asked = jobs((RED, 1, 4, 180, None), (BLUE, 61, 1, 30, 60), (BLUE, 61, 1, 30, 60))
    assert waited(replayed(decide, asked, bookings=(booking,)))[1:] == [0, 0]
    assert min(waited(replayed(fifo, asked, bookings=(booking,)))[1:]) > 60


def test_the_fair_part_is_ones_own_and_then_by_weight() -> None:
    quotas = {RED: Quota(2, 8, weight=1), BLUE: Quota(2, 8, weight=3), UUID(int=3): Quota(4, 8)}
    shared = Pool("made", 2, 4, 1, quotas)
    parts = fair_parts(shared, {RED: 8, BLUE: 8, UUID(int=3): 0}, 8)
    assert parts == {RED: 3, BLUE: 5, UUID(int=3): 0}


def test_jain_is_one_for_equals_and_a_half_if_one_of_two_has_all() -> None:
    assert jain([3, 3]) == 1
    assert jain([1, 0]) == 0.5


def test_a_made_trace_asks_for_what_is_said_and_is_the_same_each_time() -> None:
    kind = Kind(300, {RED: 3, BLUE: 1}, {1: 1, 2: 1}, 3)
    make: Callable[[], Pool] = lambda: made(Random(7), pool(nodes=10), [kind], load=0.9, days=7)  # noqa: E731
    once = make()
    asked = sum(job.units * job.seconds for job in once.jobs)
    assert abs(asked / (40 * 7 * 24 * HOUR) - 0.9) < 0.01
    assert once == make()
    assert all(job.seconds <= job.asked_minutes * 60 for job in once.jobs if job.asked_minutes)


def test_everybody_is_served_in_the_end_and_no_node_holds_too_much() -> None:
    kind = Kind(40, {RED: 3, BLUE: 1}, {1: 3, 2: 1, 4: 1}, 3)
    trace = made(Random(3), pool(nodes=2, nominal=4), [kind], load=0.9, days=4)

    def checked(state: PoolState) -> Decisions:
        assert all(node.free.units >= 0 for node in state.nodes)
        return decide(state)

    simulation = Simulation(trace, checked, foretold.Teller()).run()
    assert all(work.ended < float("inf") for work in simulation.work)
    assert all(
        work.ended - work.job.at >= work.job.seconds + work.waited + work.lost_seconds
        for work in simulation.work
    )
    assert simulation.teller and simulation.teller.told


def test_what_it_takes_from_the_real_thing_is_what_that_says() -> None:
    assert engine.START_MARGIN == pool_state.START_MARGIN
    assert engine.HALF_LIFE_DAYS == usage.HALF_LIFE_DAYS
    assert foretold.REMEMBERED == forecasts.REMEMBERED
