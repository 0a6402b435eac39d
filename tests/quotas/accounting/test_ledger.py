"""The ledger counts every admitted second once, despite wrong clocks, crashes and concurrent calls."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quotas import admission
from quotas.accounting import ledger
from quotas.models import Claim, LedgerEntry
from tests.shared.concurrency import at_once
from tests.shared.runs import run_of
from tests.shared.stage import Stage, again

MICROSECOND = timedelta(microseconds=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def in_ledger(claim: Claim) -> timedelta:
    entries = LedgerEntry.objects.filter(claim=claim)
    return (entries.aggregate(sum=Sum("microseconds"))["sum"] or 0) * MICROSECOND


def by_day(claim: Claim) -> dict[date, timedelta]:
    entries = LedgerEntry.objects.filter(claim=claim).values_list("day", "microseconds")
    return {day: amount * MICROSECOND for day, amount in entries}


def release_at(monkeypatch: pytest.MonkeyPatch, claim: Claim, moment: datetime) -> Claim:
    with monkeypatch.context() as clock:
        clock.setattr(timezone, "now", lambda: moment)
        assert admission.release(claim.pk, "stopped")
    return again(claim)


@given(
    begin=st.datetimes(datetime(2026, 1, 1), datetime(2026, 3, 1), timezones=st.just(UTC)),
    length=st.timedeltas(timedelta(0), timedelta(days=40)),
)
def test_a_period_is_split_by_day_without_loss(begin: datetime, length: timedelta) -> None:
    parts = list(ledger.days(begin, begin + length))
    assert sum(amount for _day, amount in parts) * MICROSECOND == length
    assert [day for day, _amount in parts] == sorted({day for day, _amount in parts})
    assert all(0 < amount <= 86_400_000_000 for _day, amount in parts)


def test_no_time_backwards() -> None:
    assert list(ledger.days(NOON, NOON - HOUR)) == []


@pytest.mark.django_db
class TestOneClaim:
    def test_a_release_writes_its_time_by_day(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        claim = run_of(stage, NOON)
        end = NOON + timedelta(days=1, hours=3, microseconds=1)
        release_at(monkeypatch, claim, end)
        assert by_day(claim) == {
            date(2026, 3, 1): 12 * HOUR,
            date(2026, 3, 2): 15 * HOUR + MICROSECOND,
        }
        assert again(claim).settled_until == end

    def test_a_claim_that_never_ran_has_no_entries(self, stage: Stage) -> None:
        claim = run_of(stage, None, state="waiting", node="")
        assert admission.release(claim.pk, "withdrawn")
        assert not by_day(claim)

    def test_restarts_and_returns_to_the_queue_are_written_too(self, stage: Stage) -> None:
        first = run_of(stage, NOON)
        second = admission.renew(first)
        third = admission.send_back(second, "unschedulable", {})
        for ended in (again(first), again(second)):
            assert ended.released_at is not None and ended.admitted_at is not None
            assert in_ledger(ended) == ended.released_at - ended.admitted_at > timedelta(0)
        assert not by_day(third)

    def test_a_run_is_settled_now_and_then_and_not_more_often(self, stage: Stage) -> None:
        claim = run_of(stage, timezone.now() - HOUR)
        assert ledger.settle_due() == 1
        assert in_ledger(claim) >= HOUR
        assert ledger.settle_due() == 0, "it was settled just now"

    def test_old_released_claims_are_settled_in_batches(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claims = [run_of(stage, NOON) for _number in range(3)]
        Claim.objects.update(state="released", released_at=NOON + 2 * HOUR)
        monkeypatch.setattr(ledger, "BATCH", 2)
        assert ledger.settle_due() == 3
        assert [in_ledger(claim) for claim in claims] == [2 * HOUR] * 3
        assert ledger.settle_due() == 0

    def test_entries_keep_the_size_and_weight_of_their_time(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim = run_of(stage, NOON, gpus=2)
        ledger.settle(claim.pk, NOON + HOUR)
        stage.pool.weight = Decimal("2.5")
        stage.pool.save()
        release_at(monkeypatch, claim, NOON + timedelta(days=1))
        entries = LedgerEntry.objects.filter(claim=claim).order_by("day")
        assert list(entries.values_list("units", "weight")) == [(2, Decimal(1)), (2, Decimal("2.5"))]

    def test_a_clock_that_jumps_by_years_settles_one_step(self, stage: Stage) -> None:
        claim = run_of(stage, NOON)
        ledger.settle(claim.pk, NOON + timedelta(days=4000))
        assert in_ledger(claim) == ledger.MOST_AT_ONCE

    def test_a_release_removes_time_recorded_by_a_fast_clock(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim = run_of(stage, NOON)
        ledger.settle(claim.pk, NOON + timedelta(days=3))
        release_at(monkeypatch, claim, NOON + timedelta(hours=13))
        assert by_day(claim) == {date(2026, 3, 1): 12 * HOUR, date(2026, 3, 2): HOUR}

    def test_a_release_before_the_admission_counts_nothing(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim = run_of(stage, NOON)
        ledger.settle(claim.pk, NOON + HOUR)
        release_at(monkeypatch, claim, NOON - HOUR)
        assert not by_day(claim)

    def test_settling_a_released_claim_changes_nothing(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim = run_of(stage, NOON)
        release_at(monkeypatch, claim, NOON + HOUR)
        ledger.settle(claim.pk, NOON + 5 * HOUR)
        assert in_ledger(claim) == HOUR

    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        looks=st.lists(
            st.tuples(st.timedeltas(timedelta(days=-3), timedelta(days=6)), st.booleans()), max_size=6
        ),
        end=st.timedeltas(timedelta(days=-1), timedelta(days=6)),
    )
    def test_each_second_is_recorded_once_despite_wrong_clocks_and_kills(
        self, stage: Stage, looks: list[tuple[timedelta, bool]], end: timedelta
    ) -> None:
        """Settle by several clocks, where any call may die before it commits; then release."""
        with transaction.atomic():
            claim = run_of(stage, NOON)
            known = timedelta(0)
            for clock, dies in looks:
                before = by_day(claim)
                with suppress(ZeroDivisionError), transaction.atomic():
                    ledger.settle(claim.pk, NOON + clock)
                    if dies:
                        raise ZeroDivisionError
                known = known if dies else max(known, clock)
                assert in_ledger(claim) == known
                assert not dies or by_day(claim) == before
            Claim.objects.filter(pk=claim.pk).update(state="released", released_at=NOON + end)
            ledger.close(again(claim))
            assert by_day(claim) == {
                day: amount * MICROSECOND for day, amount in ledger.days(NOON, NOON + end)
            }
            transaction.set_rollback(True)


@pytest.mark.django_db(transaction=True)
def test_concurrent_settling_and_release_count_each_second_once(stage: Stage) -> None:
    claim = run_of(stage, timezone.now() - timedelta(days=2))

    def settles_or_releases(number: int) -> None:
        if number == 4:
            admission.release(claim.pk, "stopped")
            return
        for _time in range(5):
            ledger.settle(claim.pk, timezone.now() + timedelta(minutes=(-60, 0, 0, 60)[number]))
            ledger.settle_due()

    at_once(settles_or_releases, threads=5)
    ended = again(claim)
    assert ended.released_at is not None and ended.admitted_at is not None
    assert in_ledger(claim) == ended.released_at - ended.admitted_at
    assert ended.settled_until == ended.released_at
