"""Booking of GPUs for a time: for a class, or before a deadline. Owners of a tenant and admins do it.

`free_slots.py` decides whether they are free, under the cluster's admission lock, on the pool as a pass would read it:
of two people who book the same at once one gets it, and the other learns the next free time.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.access import Actor, not_there, require_owner, roles_of, visible_tenants
from accounts.models import Role, Tenant
from accounts.trail import audit
from quotas import admission, live, passes
from quotas.bookings.notices import notify_of
from quotas.bookings.rules import Wish, free, is_less, next_free_when_taken, refuse_change
from quotas.bookings.warm import WarmImage, images_of
from quotas.models import Booking, Pool
from quotas.scheduling import as_gpus

CHANGING = ("title", "starts_at", "ends_at", "places")


@dataclass(frozen=True)
class Seen:
    """A booking as a person sees it: of other tenants' only that GPUs are booked."""

    booking: Booking
    is_own: bool
    may_change: bool
    images: Sequence[WarmImage] = ()  # where they were asked for


def get(actor: Actor, booking_id: UUID) -> Booking:
    """Return a booking of one of the actor's tenants."""
    booking = in_pools(actor).filter(pk=booking_id, tenant__in=visible_tenants(actor)).first()
    if booking is None:
        raise not_there()
    return booking


def in_pools(actor: Actor) -> QuerySet[Booking]:
    """Return all bookings that keep GPUs, and the cancelled ones of the actor's tenants."""
    rows = Booking.objects.filter(Q(tenant__in=visible_tenants(actor)) | Q(cancelled_at=None))
    return rows.select_related("pool", "tenant", "created_by")


def seen_by_pool(
    actor: Actor, pools: Sequence[Pool], begins: datetime, ends: datetime
) -> defaultdict[UUID, list[Seen]]:
    """Return the bookings of each pool that keep GPUs at some time between the two."""
    rows = in_pools(actor).filter(pool__in=pools, starts_at__lt=ends, ends_at__gt=begins, cancelled_at=None)
    found: defaultdict[UUID, list[Seen]] = defaultdict(list)
    for one in seen(actor, rows.order_by("starts_at", "pk")):
        found[one.booking.pool_id].append(one)
    return found


def next_after(actor: Actor, pools: Sequence[Pool], moment: datetime) -> Booking | None:
    """Return the first booking that begins after a moment."""
    rows = in_pools(actor).filter(pool__in=pools, starts_at__gt=moment, cancelled_at=None)
    return rows.order_by("starts_at", "pk").first()


def seen(actor: Actor, rows: Iterable[Booking]) -> list[Seen]:
    rows = list(rows)
    own = {tenant.pk: role == Role.OWNER for tenant, role in roles_of(actor)} if rows else {}
    return [Seen(row, row.tenant_id in own, own.get(row.tenant_id, False)) for row in rows]


def seen_with_images(actor: Actor, rows: Iterable[Booking]) -> list[Seen]:
    """Return bookings with the images that warm for them, in one query more."""
    found = seen(actor, rows)
    warm = images_of({one.booking.pk for one in found if one.is_own})
    return [replace(one, images=warm.get(one.booking.pk, ())) for one in found]


def book(actor: Actor, tenant: Tenant, pool: Pool, wish: Wish) -> Booking:
    require_owner(actor, tenant)
    with next_free_when_taken(), _locked(pool) as fresh:
        wanted, slots = free(tenant, fresh, wish, uuid.uuid4())
        booking = Booking.objects.create(
            id=wanted.booking,
            pool=fresh,
            tenant=tenant,
            created_by=actor.user,
            title=wish.title,
            starts_at=wish.starts_at,
            ends_at=wish.ends_at,
            places=wanted.places,
            units_each=wanted.units_each,
        )
        _record(actor, booking, "create")
        notify_of("booked", booking, actor.user, slots.preempted_by(wanted))
    return booking


def change(actor: Actor, booking: Booking, wish: Wish) -> Booking:
    """Change title, time or number of places. A booking that has begun keeps its start."""
    require_owner(actor, booking.tenant)
    with next_free_when_taken(), _locked(booking.pool) as fresh:
        booking = Booking.objects.select_related("tenant", "pool", "created_by").get(pk=booking.pk)
        was = Wish.of(booking)
        if wish == was:
            return booking
        refuse_change(booking, wish)
        preempted: tuple[UUID, ...] = ()
        if not is_less(wish, was):
            wanted, slots = free(booking.tenant, fresh, wish, booking.pk, begins_at=booking.starts_at)
            preempted = slots.preempted_by(wanted)
        for name in CHANGING:
            setattr(booking, name, getattr(wish, name))
        booking.save(update_fields=CHANGING)
        if replace(wish, title=was.title) != was:
            notify_of("changed", booking, actor.user, preempted)
        before = {name: getattr(was, name) for name in CHANGING if getattr(was, name) != getattr(wish, name)}
        _record(actor, booking, "change", before)
    return booking


def cancel(actor: Actor, booking: Booking) -> bool:
    """Cancel a booking, or what is left of it; its runs go on. False: it is over or cancelled already."""
    require_owner(actor, booking.tenant)
    with _locked(booking.pool):
        now = timezone.now()
        still = Booking.objects.filter(pk=booking.pk, cancelled_at=None, ends_at__gt=now)
        if not still.update(cancelled_at=now):
            return False
        _record(actor, booking, "cancel")
        notify_of("cancelled", booking, actor.user)
    return True


@contextmanager
def _locked(pool: Pool) -> Iterator[Pool]:
    """Keep passes and other bookings out; afterwards request a pass for the queue and update pages."""
    with transaction.atomic():
        admission.lock(pool.cluster_id)
        yield Pool.objects.get(pk=pool.pk)
        passes.want(pool.pk)
        live.on_change()


def _record(actor: Actor, booking: Booking, verb: str, before: dict[str, Any] | None = None) -> None:
    data = {
        "name": booking.title,
        "pool": booking.pool.slug,
        "starts_at": booking.starts_at.isoformat(),
        "ends_at": booking.ends_at.isoformat(),
        "places": booking.places,
        "gpus_each": as_gpus(booking.units_each, booking.pool.units_per_gpu),
    }
    if before is not None:
        data["before"] = {name: str(value) for name, value in before.items()}
    audit.record(actor, f"booking.{verb}", target=booking, tenant=booking.tenant, data=data)
