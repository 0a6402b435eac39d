"""Template tags about bookings, for pages of the rooms above."""

from __future__ import annotations

from uuid import UUID

from django import template
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce

from accounts.models import Tenant
from quotas.models import Booking, Claim

register = template.Library()


@register.simple_tag
def booked_now(tenant: Tenant, pool: str, units: int) -> Booking | None:
    """Return the tenant's booking that has a free place, in which such a run would start now."""
    if not units:
        return None
    running = Booking.objects.filter(
        Booking.in_state(Booking.State.RUNNING), tenant=tenant, pool__slug=pool, units_each__gte=units
    )
    used = Coalesce(Sum("claims__members", filter=Q(claims__state=Claim.State.ADMITTED)), 0)
    return running.alias(used=used).filter(used__lt=F("places")).first()


@register.simple_tag
def booking_of(holder: UUID) -> Booking | None:
    """Return the booking in whose place a workspace runs, until the booking is over."""
    held = {"claims__holder_id": holder, "claims__state": Claim.State.ADMITTED}
    return Booking.objects.filter(Booking.in_state(Booking.State.RUNNING), **held).first()
