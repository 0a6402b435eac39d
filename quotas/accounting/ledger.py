"""The ledger: how long each claim was admitted, day by day (UTC). Every admitted second stands there once.

What stands there of a claim is always its time from `admitted_at` up to its watermark, `settled_until`. Rows are
written with what they are to say, never added to, in the transaction that moves the watermark and under the claim's
lock: who dies with it, does it twice or comes late changes nothing.

While a claim runs its watermark only goes forward, so that a clock that was set back takes nothing away and counts
nothing again. The release has the last word: what a clock that stood ahead wrote beyond it is taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.locks import locked
from quotas.models import Claim, LedgerEntry

State = Claim.State

MICROSECOND = timedelta(microseconds=1)
# How far what stands there of a run may lie behind.
SETTLED_EVERY = timedelta(minutes=10)
# A run is settled by so much at once, lest a clock that jumps ahead fills years.
MOST_AT_ONCE = timedelta(days=31)
BATCH = 500
BATCHES_AT_ONCE = 20


def settle(claim_id: UUID, upto: datetime) -> None:
    """Have a claim's time in the ledger: of a run up to then, of what was released up to its release."""
    with transaction.atomic():
        _settle(list(_locked(Q(pk=claim_id))), upto)


def close(claim: Claim) -> None:
    """The same, in the transaction that released the claim and so holds its row."""
    if claim.admitted_at is not None:
        _settle([claim], timezone.now())


def settle_due() -> int:
    """Runs of which the ledger knows too little, and what was released before there was one. How many there were."""
    now = timezone.now()
    behind = Q(settled_until__isnull=True) | Q(settled_until__lt=now - SETTLED_EVERY)
    done = 0
    for which in (Q(behind, state=State.ADMITTED), Q(state=State.RELEASED, settled_until__isnull=True)):
        for _batch in range(BATCHES_AT_ONCE):
            with transaction.atomic():
                claims = list(_locked(which, skip_busy=True)[:BATCH])
                _settle(claims, now)
            done += len(claims)
            if len(claims) < BATCH:
                break
    return done


def days(begin: datetime, end: datetime) -> Iterator[tuple[date, int]]:
    """The time between, in microseconds, by day."""
    at = begin.astimezone(UTC)
    while at < end:
        midnight = datetime.combine(at.date() + timedelta(days=1), time.min, UTC)
        until = min(midnight, end)
        yield at.date(), (until - at) // MICROSECOND
        at = midnight


def known_until(claim: Claim) -> datetime:
    """Up to when the time of one that was admitted stands there."""
    assert claim.admitted_at is not None
    return claim.settled_until or claim.admitted_at


def _locked(which: Q, *, skip_busy: bool = False) -> QuerySet[Claim]:
    admitted = Claim.objects.filter(which, admitted_at__isnull=False)
    return locked(admitted, skip_busy=skip_busy).select_related("pool")


def _settle(claims: Sequence[Claim], now: datetime) -> None:
    entries: list[LedgerEntry] = []
    for claim in claims:
        upto = _end(claim, now)
        entries += _write(claim, upto)
        claim.settled_until = upto
    LedgerEntry.objects.bulk_create(
        entries, update_conflicts=True, unique_fields=["claim", "day"], update_fields=["microseconds"]
    )
    Claim.objects.bulk_update(claims, ["settled_until"])


def _end(claim: Claim, now: datetime) -> datetime:
    """Up to when a claim's time is to stand there."""
    assert claim.admitted_at is not None
    if claim.released_at is not None:
        return max(claim.released_at, claim.admitted_at)
    known = known_until(claim)
    return max(known, min(now, known + MOST_AT_ONCE))


def _write(claim: Claim, upto: datetime) -> list[LedgerEntry]:
    """The rows of the days on which something becomes another; those of none any more are deleted."""
    assert claim.admitted_at is not None
    known = known_until(claim)
    first = min(known, upto).astimezone(UTC).date()
    amounts = {day: amount for day, amount in days(claim.admitted_at, upto) if day >= first}
    if upto < known:
        LedgerEntry.objects.filter(claim=claim, day__gte=first).exclude(day__in=amounts).delete()
    return [
        LedgerEntry(
            claim=claim,
            day=day,
            pool=claim.pool,
            tenant_id=claim.tenant_id,
            user_id=claim.user_id,
            microseconds=amount,
            units=claim.units,
            units_per_gpu=claim.pool.units_per_gpu,
            weight=claim.pool.weight,
        )
        for day, amount in amounts.items()
    ]
