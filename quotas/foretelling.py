"""What those who wait are told: their place, the GPUs ahead of them, and when they will start.

Made anew after each pass, beside it: a forecast of a long queue takes longer than anybody should hold the cluster's
lock for. A row is written when a person would notice the difference, and its page hears of it then.
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
from quotas.scheduling.forecast import Range, Stretch, enough_plays, forecast, moved
from quotas.scheduling.lengths import Lengths, Past
from quotas.signals import standing_changed
from quotas.when import range_of
from vitals.clock import about

State = Claim.State
# Of the newest runs that have ended so many are looked at.
REMEMBERED = 1000
AT_MOST_EVERY = timedelta(seconds=1)
TOLD = ("position", "units_ahead", "estimated_from", "estimated_to", "told_from", "told_to")


def foretell(pool_id: UUID) -> None:
    """Of a pool, unless that was done a moment ago: the watcher's next tick wants a pass, and so asks again."""
    pool, now = Pool.objects.get(pk=pool_id), timezone.now()
    queue = Claim.objects.filter(pool=pool, state=State.WAITING)
    idle = Q(forecast_at=None) | ~about("forecast_at", now, AT_MOST_EVERY)
    if not queue.exists() or not Pool.objects.filter(idle, pk=pool_id).update(forecast_at=now):
        return
    stretch = _learn(pool)
    waiting = list(queue)
    state = pool_state.read(pool, waiting)
    found = forecast(state, lengths_of(pool, now), stretch, enough_plays(state))
    _write(pool, _changed(waiting, state, found))


def lengths_of(pool: Pool, now: datetime) -> Lengths:
    """How long its runs lasted, and last so far. Two queries."""
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
    """Their lengths are made in the database: a thousand times read as such would take longest of all."""
    span = ExpressionWrapper(until - F("admitted_at"), output_field=DurationField())
    lasted = Cast(Extract(span, "epoch"), FloatField())
    return claims.annotate(lasted=lasted).values_list("tenant_id", "user_id", "lasted", "max_runtime_minutes")


def stretch_of(pool: Pool) -> Stretch:
    return Stretch(pool.forecast_early, pool.forecast_late)


def _learn(pool: Pool) -> Stretch:
    """From what started since the last forecast, and had been told when it would."""
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
    """With what they are told from now on."""
    places = {waits.claim: (waits.position, waits.units_ahead) for waits in decide(state).waits}
    changed = []
    for claim in waiting:
        if claim.pk not in places:
            continue  # the pass that is on its way lets it start
        is_other = (claim.position, claim.units_ahead) != places[claim.pk]
        claim.position, claim.units_ahead = places[claim.pk]
        told = found.get(claim.pk)
        if moved(range_of(claim), told, state.now):
            is_other = True
            claim.estimated_from, claim.estimated_to = (told.earliest, told.latest) if told else (None, None)
        if claim.told_from is None and told and told.latest:
            is_other = True
            claim.told_from, claim.told_to = told.earliest, told.latest
        if is_other:
            changed.append(claim)
    return changed


@transaction.atomic
def _write(pool: Pool, changed: Sequence[Claim]) -> None:
    if not changed:
        return
    admission.lock(pool.cluster_id)
    Claim.objects.filter(state=State.WAITING).bulk_update(changed, TOLD, batch_size=500)
    standing_changed.send(sender=Claim, claims=changed)
