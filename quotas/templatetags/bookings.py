"""Template tags about bookings, for pages of the rooms above."""

from __future__ import annotations

from uuid import UUID

from django import template

from accounts.models import Tenant
from quotas.bookings import changes as bookings
from quotas.models import Booking, Claim

register = template.Library()


@register.simple_tag
def booked_now(tenant: Tenant, pool: str, units: int) -> Booking | None:
    """Return the tenant's booking in whose place such a run would start now."""
    return bookings.place_now(tenant, pool, units) if units else None


@register.simple_tag
def booking_of(holder: UUID) -> Booking | None:
    """Return the booking in whose place a workspace runs, until the booking is over."""
    held = (
        Claim.objects.filter(holder_id=holder, state=Claim.State.ADMITTED).select_related("booking").first()
    )
    booking = held.booking if held else None
    return booking if booking and booking.state == Booking.State.RUNNING else None
