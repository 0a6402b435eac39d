"""What pages of the rooms above say of bookings."""

from __future__ import annotations

from uuid import UUID

from django import template

from accounts.models import Tenant
from quotas.bookings import changes as bookings
from quotas.models import Booking, Claim

register = template.Library()


@register.simple_tag
def booked_now(tenant: Tenant, pool: str, units: int) -> Booking | None:
    """The booking of its tenant in whose place such a run would start."""
    return bookings.place_now(tenant, pool, units) if units else None


@register.simple_tag
def booking_of(holder: UUID) -> Booking | None:
    """The booking in whose place a workspace runs, until it is over."""
    held = (
        Claim.objects.filter(holder_id=holder, state=Claim.State.ADMITTED).select_related("booking").first()
    )
    booking = held.booking if held else None
    return booking if booking and booking.state == Booking.State.RUNNING else None
