"""Monthly budgets of GPU-hours: exact counts, notices in time, and enforcement while things run."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from django.db.models import Q
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.access import Actor
from accounts.errors import Invalid, NotAllowed
from accounts.models import AuditEntry
from accounts.notices import words
from accounts.notices.models import Notice
from portal.queue import broker
from quotas import admission, enqueue, reasons, tasks
from quotas.accounting import budgets, ledger, spending
from quotas.accounting.hours import hours
from quotas.models import Budget, BudgetMonth, Claim
from quotas.signals import claim_ends_by_budget, claim_to_stop
from tests.shared.runs import ran, run_of
from tests.shared.stage import Stage, again

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Clock:
    """The current time for all code under test."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timezone, "now", clock)
    return clock


@pytest.fixture
def stage(stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(enqueue, "look_at_spending", lambda: None)
    return stage


class Heard:
    """Records the signals sent to the room above."""

    def __init__(self) -> None:
        self.ends: list[tuple[Any, datetime | None]] = []
        self.stops: list[tuple[Any, str]] = []
        claim_ends_by_budget.connect(self.on_ends)
        claim_to_stop.connect(self.on_stop)

    def on_ends(self, claim: Claim, **_: object) -> None:
        self.ends.append((claim.pk, claim.budget_ends_at))

    def on_stop(self, claim: Claim, code: str, **_: object) -> None:
        self.stops.append((claim.pk, code))


@pytest.fixture
def heard(stage: Stage) -> Heard:
    return Heard()


def budget(stage: Stage, gpu_hours: float, by: Actor | None = None, **values: Any) -> Budget:
    """Create a budget of demo, or of one person in it."""
    return Budget.objects.create(
        tenant=stage.cast.demo, user=by.user if by else None, gpu_hours=Decimal(str(gpu_hours)), **values
    )


def standing(of: Budget) -> budgets.Standing:
    [found] = budgets.standings([of], timezone.now())
    return found


def notified() -> list[tuple[str, int]]:
    notices = Notice.objects.filter(kind="budget").order_by("at")
    return [(notice.user.username, notice.data["percent"]) for notice in notices]


# --- Counting


def test_slices_count_as_fractions_and_pools_by_their_weight_exactly(stage: Stage) -> None:
    sliced = stage.another_pool("sliced", units_per_gpu=7, weight=Decimal("0.5"))
    ran(stage, NOW - 10 * HOUR, 3, gpus=2)
    ran(stage, NOW - 10 * HOUR, 1, gpus=1, pool=sliced)
    run_of(stage, NOW - HOUR, gpus=1)
    assert standing(budget(stage, 10)).spent == 6 + Fraction(1, 14) + 1


def test_only_the_past_of_this_month_counts(stage: Stage) -> None:
    ran(stage, datetime(2026, 2, 28, 22, tzinfo=UTC), 5)
    run_of(stage, NOW + HOUR)  # recorded by a fast clock
    assert standing(budget(stage, 10)).spent == 3


def test_a_persons_budget_counts_their_hours_and_a_tenants_all_hours(stage: Stage) -> None:
    ran(stage, NOW - 5 * HOUR, 1, by=stage.cast.alice)
    ran(stage, NOW - 5 * HOUR, 2, by=stage.cast.bob)
    ran(stage, NOW - 5 * HOUR, 4, by=stage.cast.carol)
    assert standing(budget(stage, 10)).spent == 3
    assert standing(budget(stage, 10, stage.cast.bob)).spent == 2


def test_reading_needs_as_many_queries_whatever_there_is(
    stage: Stage, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert budgets.blocked_by_budget({stage.cast.demo.pk}) == ({}, {})
    for who in (None, stage.cast.alice, stage.cast.bob):
        budget(stage, 1, who)
    for number in range(1, 5):
        ran(stage, NOW - number * 2 * HOUR, 1)
        run_of(stage, NOW - HOUR)
    with django_assert_num_queries(4):
        whole, people = budgets.blocked_by_budget({stage.cast.demo.pk, stage.cast.second.pk})
    assert set(whole) == {stage.cast.demo.pk}
    assert set(people) == {(stage.cast.demo.pk, stage.cast.alice.user.pk)}


def test_current_runs_are_counted_once_beside_the_ledger(stage: Stage) -> None:
    claim = run_of(stage, NOW - 30 * HOUR)
    for _time in range(2):
        found = hours(Q(), date(2026, 3, 1), date(2026, 3, 31), ("day",), NOW)
        assert sum(amount.allocated for amount in found.values()) == 30
        ledger.settle(claim.pk, NOW - 20 * HOUR)


# --- Starting


def test_a_spent_budget_blocks_with_a_reason(stage: Stage) -> None:
    ran(stage, NOW - 10 * HOUR, 5)
    budget(stage, 5)
    whole, _people = budgets.blocked_by_budget({stage.cast.demo.pk})
    reason = whole[stage.cast.demo.pk]
    assert reason.code == "budget_spent"
    assert reasons.sentence(reason.code, reason.data) == (
        "All 5 GPU-hours of Demo for this month are used up: nothing with GPUs starts before 1 Apr 2026 (UTC)."
    )


def test_a_claim_waits_for_its_budget_and_starts_in_the_new_month(stage: Stage, clock: Clock) -> None:
    ran(stage, NOW - 10 * HOUR, 5)
    budget(stage, 5, stage.cast.alice)
    waiting, other = stage.request(), stage.request(by=stage.cast.bob)
    stage.admit()
    assert (again(waiting).state, again(waiting).reason_code) == ("waiting", "budget_spent")
    assert again(other).state == "admitted", "a person's budget is theirs alone"
    clock.now = datetime(2026, 4, 1, tzinfo=UTC)
    stage.admit()
    assert again(waiting).state == "admitted"


def test_a_run_without_gpus_starts_despite_a_spent_budget(stage: Stage) -> None:
    cpu = stage.cpu_pool()
    budget(stage, 0)
    waiting = stage.request(0, pool=cpu)
    stage.admit(cpu)
    assert again(waiting).state == "admitted"


# --- Notices


def test_owners_are_notified_once_at_80_95_and_100_percent(stage: Stage, clock: Clock) -> None:
    run_of(stage, NOW)
    budget(stage, 100)
    for hours_later in (79, 80, 81, 95, 95.5, 100, 101):
        clock.now = NOW + hours_later * HOUR
        spending.keep_to_budgets()
        spending.keep_to_budgets()
    assert notified() == [("alice", 80), ("alice", 95), ("alice", 100)]


def test_a_person_is_notified_of_the_highest_percentage_only(stage: Stage) -> None:
    ran(stage, NOW - 10 * HOUR, 5, by=stage.cast.bob)
    budget(stage, 5, stage.cast.bob)
    spending.keep_to_budgets()
    assert notified() == [("bob", 100)]
    said = words.of(stage.cast.bob.user, list(Notice.objects.filter(kind="budget")))
    [one] = said.values()
    assert one.title == "Your GPU-hours in Demo are spent"
    assert one.text == "5 of 5 GPU-hours of this month are used."
    assert "1 Apr 2026" in one.hint and "60 minutes" in one.hint


def test_a_killed_check_notifies_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(stage, NOW - 10 * HOUR, 9)
    budget(stage, 10)
    with monkeypatch.context() as killed:
        killed.setattr(BudgetMonth, "save", lambda *args, **kwargs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            spending.keep_to_budgets()
    assert notified() == []
    spending.keep_to_budgets()
    BudgetMonth.objects.update(told_percent=0)  # as if notified, but not recorded
    spending.keep_to_budgets()
    assert notified() == [("alice", 80)]


# --- Current runs


def test_a_spent_budget_announces_an_end_and_then_stops_the_run(
    stage: Stage, heard: Heard, clock: Clock
) -> None:
    claim = run_of(stage, NOW)
    free = run_of(stage, NOW, 0, pool=stage.cpu_pool())
    budget(stage, 5, grace_minutes=30)
    clock.now = NOW + 5 * HOUR
    spending.keep_to_budgets()
    spending.keep_to_budgets()
    end = clock.now + timedelta(minutes=30)
    assert heard.ends == [(claim.pk, end)]
    assert heard.stops == []
    clock.now = end
    spending.keep_to_budgets()
    spending.keep_to_budgets()
    assert heard.ends == [(claim.pk, end)]
    assert heard.stops == [(claim.pk, "budget_spent")] * 2
    admission.release(claim.pk, "stop")
    spending.keep_to_budgets()
    assert len(heard.stops) == 2
    assert again(free).state == "admitted"


def test_both_budgets_hold_and_the_first_end_counts(stage: Stage, heard: Heard, clock: Clock) -> None:
    mine, others = run_of(stage, NOW, by=stage.cast.bob), run_of(stage, NOW, by=stage.cast.alice)
    budget(stage, 10, grace_minutes=120)
    of_bob = budget(stage, 5, stage.cast.bob, grace_minutes=30)
    clock.now = NOW + 5 * HOUR
    spending.keep_to_budgets()
    assert again(mine).budget_ends_at == clock.now + timedelta(minutes=30)
    assert again(others).budget_ends_at == clock.now + timedelta(minutes=120)
    budgets.add_hours(stage.cast.admin, of_bob, Decimal(50))
    spending.keep_to_budgets()
    assert again(mine).budget_ends_at == clock.now + timedelta(minutes=120)


def test_a_new_month_withdraws_the_end(stage: Stage, heard: Heard, clock: Clock) -> None:
    clock.now = datetime(2026, 3, 31, 23, 30, tzinfo=UTC)
    claim = run_of(stage, clock.now - 5 * HOUR)
    budget(stage, 5)
    spending.keep_to_budgets()
    assert again(claim).budget_ends_at
    clock.now += HOUR
    spending.keep_to_budgets()
    assert heard.ends[-1] == (claim.pk, None)
    assert heard.stops == []


# --- Adding hours


def test_added_hours_withdraw_the_end(stage: Stage, heard: Heard, clock: Clock) -> None:
    claim = run_of(stage, NOW)
    row = budget(stage, 5)
    clock.now = NOW + 5 * HOUR
    spending.keep_to_budgets()
    budgets.add_hours(stage.cast.admin, row, Decimal("2.5"))
    assert standing(row).limit == Fraction(15, 2)
    spending.keep_to_budgets()
    assert heard.ends[-1] == (claim.pk, None)
    clock.now += 3 * HOUR
    spending.keep_to_budgets()
    assert again(claim).budget_ends_at == clock.now + HOUR, "a second end has a grace of its own"
    assert notified() == [("alice", 100), ("alice", 100)], "of 5 hours, and of 7.5"
    entry = AuditEntry.objects.get(action="budget.add_hours")
    assert (entry.data["gpu_hours"], entry.tenant) == ("2.5", stage.cast.demo)


def test_hours_added_after_a_pass_began_save_a_run_from_its_stop(
    stage: Stage, heard: Heard, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(stage, NOW)
    row = budget(stage, 5, grace_minutes=0)
    clock.now = NOW + 5 * HOUR
    concerned = spending._concerned

    def adds_then_reads(ends: spending.Ends) -> Any:
        budgets.add_hours(stage.cast.admin, row, Decimal(1))
        return concerned(ends)

    monkeypatch.setattr(spending, "_concerned", adds_then_reads)
    spending.keep_to_budgets()
    assert heard.stops == []


def test_only_admins_add_hours_up_to_a_limit_per_month(stage: Stage) -> None:
    row = budget(stage, 5)
    with pytest.raises(NotAllowed):
        budgets.add_hours(stage.cast.alice, row, Decimal(1))
    for wrong in (Decimal(0), Decimal(-1), Decimal(10**9)):
        with pytest.raises(Invalid):
            budgets.add_hours(stage.cast.admin, row, wrong)
    assert not BudgetMonth.objects.filter(added_gpu_hours__gt=0).exists()
    budgets.add_hours(stage.cast.admin, row, Decimal(9_999_990))
    with pytest.raises(Invalid, match="at most 10"):
        budgets.add_hours(stage.cast.admin, row, Decimal(11))
    assert budgets.add_hours(stage.cast.admin, row, Decimal(10)).added_gpu_hours == budgets.MOST_HOURS


# --- Visibility


def test_visible_budgets_by_role(stage: Stage) -> None:
    whole, of_bob = budget(stage, 5), budget(stage, 5, stage.cast.bob)
    cast = stage.cast
    for actor, seen in (
        (cast.alice, {whole, of_bob}),
        (cast.bob, {whole, of_bob}),
        (cast.victor, {whole}),
        (cast.carol, set()),
        (cast.admin, {whole, of_bob}),
    ):
        assert set(budgets.visible(actor)) == seen


# --- Periodic checks


@pytest.mark.parametrize("between_ticks", [5.0, 5.5, 6.0])
def test_ticks_enqueue_a_check_each_minute(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, between_ticks: float
) -> None:
    looks: list[int] = []
    clock = [1_700_000_000.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    monkeypatch.setattr(enqueue, "look_at_spending", lambda: looks.append(int(clock[0]) // 60))
    begin = int(clock[0]) // 60
    while clock[0] < 1_700_000_000 + 600:
        spending.on_tick()
        clock[0] += between_ticks
    assert set(range(begin + 1, begin + 10)) <= set(looks)
    assert max(looks.count(minute) for minute in looks) <= 2


def test_a_new_worker_enqueues_a_check(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The previous worker may have died after it set a run's end and before it stopped the run."""
    looks: list[str] = []
    monkeypatch.setattr(enqueue, "look_at_spending", lambda: looks.append("a look"))
    broker.began.send(sender=None)
    assert looks == ["a look"]


def test_a_check_settles_current_runs_and_enforces_budgets(stage: Stage) -> None:
    claim = run_of(stage, NOW - 5 * HOUR)
    budget(stage, 5)
    tasks.look_at_spending()
    assert again(claim).settled_until == NOW
    assert again(claim).budget_ends_at == NOW + HOUR
