"""The ledger: how long each claim was admitted, day by day (UTC). Every admitted second is recorded once.

A claim's entries always cover its time from `admitted_at` to its watermark, `settled_until`. Entries are overwritten
with the whole amount, never incremented, in the transaction that moves the watermark and under the claim's lock. So a
crash, a repeated call or a late call changes nothing.

While a claim runs, its watermark only moves forward, so a clock that was set back removes nothing and counts nothing
twice. The release decides: time that a fast clock recorded beyond it is removed.
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
# Longest time by which a run's ledger entries may lag.
SETTLED_EVERY = timedelta(minutes=10)
# Longest step of a run's watermark, so that a clock that jumps ahead does not fill years.
MOST_AT_ONCE = timedelta(days=31)
BATCH = 500
BATCHES_AT_ONCE = 20


def settle(claim_id: UUID, upto: datetime) -> None:
    """Record a claim's time: a run's up to `upto`, a released claim's up to its release."""
    with transaction.atomic():
        _settle(list(_locked(Q(pk=claim_id))), upto)


def close(claim: Claim) -> None:
    """Record a released claim's time, in the transaction that released it and so holds its row."""
    if claim.admitted_at is not None:
        _settle([claim], timezone.now())


def settle_due() -> int:
    """Record the time of lagging runs, and of claims released before the ledger existed. Return their number."""
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
    """Yield each day (UTC) between the two times, with its microseconds."""
    at = begin.astimezone(UTC)
    while at < end:
        midnight = datetime.combine(at.date() + timedelta(days=1), time.min, UTC)
        until = min(midnight, end)
        yield at.date(), (until - at) // MICROSECOND
        at = midnight


def known_until(claim: Claim) -> datetime:
    """Return the time up to which the ledger covers an admitted claim."""
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
    """Return the time up to which the ledger shall cover the claim."""
    assert claim.admitted_at is not None
    if claim.released_at is not None:
        return max(claim.released_at, claim.admitted_at)
    known = known_until(claim)
    return max(known, min(now, known + MOST_AT_ONCE))


def _write(claim: Claim, upto: datetime) -> list[LedgerEntry]:
    """Return the entries of the days that change. Delete entries after an end that moved back."""
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
            units=claim.all_units,
            units_per_gpu=claim.pool.units_per_gpu,
            weight=claim.pool.weight,
        )
        for day, amount in amounts.items()
    ]
