"""Booking of GPUs for a time: for a class, or before a deadline. Owners of a tenant and admins do it.

`free_slots.py` decides whether they are free, under the cluster's admission lock, on the pool as a pass would read it:
of two people who book the same at once one gets it, and the other learns the next free time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from accounts.access import Actor, not_there, require_owner, roles_of, visible_tenants
from accounts.models import Role, Tenant
from accounts.trail import audit
from quotas import admission, live, passes
from quotas.bookings import notices as booking_notices
from quotas.bookings.rules import Wish, free, is_less, refuse_change, told_when_free
from quotas.models import Booking, Claim, Pool
from quotas.scheduling import as_gpus

CHANGING = ("title", "starts_at", "ends_at", "places")


@dataclass(frozen=True)
class Seen:
    """A booking as a person sees it: of other tenants' only that GPUs are booked."""

    booking: Booking
    is_own: bool
    may_change: bool


def visible(actor: Actor) -> QuerySet[Booking]:
    """Return the bookings of the actor's tenants."""
    rows = Booking.objects.filter(tenant__in=visible_tenants(actor))
    return rows.select_related("pool", "tenant", "created_by")


def get(actor: Actor, booking_id: UUID) -> Booking:
    booking = visible(actor).filter(pk=booking_id).first()
    if booking is None:
        raise not_there()
    return booking


def in_pools(actor: Actor) -> QuerySet[Booking]:
    """Return all bookings that keep GPUs, and the cancelled ones of the actor's tenants."""
    rows = Booking.objects.filter(Q(tenant__in=visible_tenants(actor)) | Q(cancelled_at=None))
    return rows.select_related("pool", "tenant", "created_by")


def seen(actor: Actor, rows: Iterable[Booking]) -> list[Seen]:
    rows = list(rows)
    own = {tenant.pk: role == Role.OWNER for tenant, role in roles_of(actor)} if rows else {}
    return [Seen(row, row.tenant_id in own, own.get(row.tenant_id, False)) for row in rows]


def book(actor: Actor, tenant: Tenant, pool: Pool, wish: Wish) -> Booking:
    require_owner(actor, tenant)
    with told_when_free(), _locked(pool) as fresh:
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
        booking_notices.booked(actor.user, booking, slots.asked_back(wanted))
    return booking


def change(actor: Actor, booking: Booking, wish: Wish) -> Booking:
    """Change title, time or number of places. A booking that has begun keeps its start."""
    require_owner(actor, booking.tenant)
    with told_when_free(), _locked(booking.pool) as fresh:
        booking = Booking.objects.select_related("tenant", "pool", "created_by").get(pk=booking.pk)
        was = Wish.of(booking)
        if wish == was:
            return booking
        refuse_change(booking, wish)
        asked_back: tuple[UUID, ...] = ()
        if not is_less(wish, was):
            wanted, slots = free(booking.tenant, fresh, wish, booking.pk, begins_at=booking.starts_at)
            asked_back = slots.asked_back(wanted)
        booking.title, booking.starts_at, booking.ends_at = wish.title, wish.starts_at, wish.ends_at
        booking.places = wish.places
        booking.save(update_fields=CHANGING)
        if replace(wish, title=was.title) != was:
            booking_notices.changed(actor.user, booking, asked_back)
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
        booking_notices.cancelled(actor.user, booking)
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


def place_now(tenant: Tenant, pool_slug: str, units: int) -> Booking | None:
    """Return a booking that has begun, with a free place in which such a run of the tenant would start."""
    running = Booking.objects.filter(
        Booking.in_state(Booking.State.RUNNING), tenant=tenant, pool__slug=pool_slug
    )
    used = Count("claims", filter=Q(claims__state=Claim.State.ADMITTED))
    return running.filter(units_each__gte=units).alias(used=used).filter(used__lt=F("places")).first()
