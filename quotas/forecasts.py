"""Forecasts for waiting requests: position, GPUs ahead, and start time.

Updated after each pass, outside the cluster's lock: the forecast of a long queue takes too long to hold the lock. A row
is written only if a person would notice the difference. Its page is notified then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, FloatField, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Extract
from django.utils import timezone

from quotas import admission, pool_state
from quotas.models import Claim, Pool
from quotas.scheduling import PoolState, decide
from quotas.scheduling.forecast import Range, Stretch, enough_draws, forecast, moved
from quotas.scheduling.lengths import Lengths, Past
from quotas.signals import standing_changed
from quotas.when import range_of
from vitals.clock import is_near_now

State = Claim.State
# Number of the newest ended runs to learn from.
REMEMBERED = 1000
AT_MOST_EVERY = timedelta(seconds=1)
WRITTEN = ("position", "units_ahead", "estimated_from", "estimated_to", "told_from", "told_to")


def update_forecasts(pool_id: UUID) -> None:
    """Update a pool's forecasts, unless just done: the watcher's next tick enqueues a pass, which calls this again."""
    queue = Claim.objects.filter(pool=pool_id, state=State.WAITING)
    if not queue.exists():
        return
    pool, now = Pool.objects.get(pk=pool_id), timezone.now()
    idle = Q(forecast_at=None) | ~is_near_now("forecast_at", now, AT_MOST_EVERY)
    if not Pool.objects.filter(idle, pk=pool_id).update(forecast_at=now):
        return
    stretch = _learn(pool)
    waiting = list(queue)
    state = pool_state.read(pool, waiting)
    found = forecast(state, lengths_of(pool, now), stretch, enough_draws(state))
    _write(pool, _changed(waiting, state, found))


def lengths_of(pool: Pool, now: datetime) -> Lengths:
    """Return the lengths of ended runs, and of current runs so far. Two queries."""
    held = Claim.objects.filter(pool=pool, admitted_at__isnull=False)
    ended = _past(held.filter(state=State.RELEASED).order_by("-released_at"), F("released_at"))
    going = _past(held.filter(state=State.ADMITTED), Value(now))
    return Lengths(
        [
            Past(tenant, user, max(0.0, lasted), minutes * 60 if minutes else None, has_ended)
            for rows, has_ended in ((ended[:REMEMBERED], True), (going, False))
            for tenant, user, lasted, minutes in rows
        ]
    )


def _past(claims: QuerySet[Claim], until: Combinable) -> QuerySet[Claim, tuple[Any, ...]]:
    """Compute lengths (seconds) in the database: parsing a thousand timestamps would be the slowest step."""
    span = ExpressionWrapper(until - F("admitted_at"), output_field=DurationField())
    lasted = Cast(Extract(span, "epoch"), FloatField())
    return claims.annotate(lasted=lasted).values_list("tenant_id", "user_id", "lasted", "max_runtime_minutes")


def stretch_of(pool: Pool) -> Stretch:
    return Stretch(pool.forecast_early, pool.forecast_late)


def _learn(pool: Pool) -> Stretch:
    """Learn from forecast runs that started since the last time. Save and return the new stretch."""
    stretch = stretch_of(pool)
    if pool.forecast_at is None:
        return stretch
    started = Claim.objects.filter(pool=pool, admitted_at__gt=pool.forecast_at, told_to__isnull=False)
    for claim in started.order_by("admitted_at").only("told_from", "told_to", "admitted_at"):
        if claim.told_from is not None and claim.admitted_at is not None:
            stretch = stretch.learn(Range(claim.told_from, claim.told_to), claim.admitted_at)
    Pool.objects.filter(pk=pool.pk).update(forecast_early=stretch.early, forecast_late=stretch.late)
    return stretch


def _changed(waiting: Sequence[Claim], state: PoolState, found: dict[UUID, Range]) -> list[Claim]:
    """Return the claims whose position or forecast changed, with the new values set."""
    places = {waits.claim: (waits.position, waits.units_ahead) for waits in decide(state).waits}
    changed = []
    for claim in waiting:
        if claim.pk not in places:
            continue  # the next pass will start it
        is_other = (claim.position, claim.units_ahead) != places[claim.pk]
        claim.position, claim.units_ahead = places[claim.pk]
        new = found.get(claim.pk)
        if moved(range_of(claim), new, state.now):
            is_other = True
            claim.estimated_from, claim.estimated_to = (new.earliest, new.latest) if new else (None, None)
        if claim.told_from is None and new and new.latest:
            is_other = True
            claim.told_from, claim.told_to = new.earliest, new.latest
        if is_other:
            changed.append(claim)
    return changed


@transaction.atomic
def _write(pool: Pool, changed: Sequence[Claim]) -> None:
    if not changed:
        return
    admission.lock(pool.cluster_id)
    Claim.objects.filter(state=State.WAITING).bulk_update(changed, WRITTEN, batch_size=500)
    standing_changed.send(sender=Claim, claims=changed)
