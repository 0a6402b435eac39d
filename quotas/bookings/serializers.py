"""Bodies of the booking endpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from math import isfinite
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from accounts.rest.serializers import StrictSerializer
from quotas.bookings.changes import Seen
from quotas.bookings.rules import LONGEST_TITLE, MOST_PLACES
from quotas.models import Booking
from quotas.scheduling import as_gpus
from quotas.serializers import GPUsField


class Moment(serializers.DateTimeField):
    """A time with its UTC offset: without one it is ambiguous."""

    def enforce_timezone(self, value: datetime) -> datetime:
        if value.tzinfo is None:
            raise serializers.ValidationError(_("Include the time zone: 2026-03-02T09:00:00Z."))
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise serializers.ValidationError(_("There is no such time.")) from None


class BookingChangeBody(StrictSerializer):
    """Fields that are left out stay."""

    title = serializers.CharField(required=False, max_length=LONGEST_TITLE)
    places = serializers.IntegerField(required=False, min_value=1, max_value=MOST_PLACES)

    are_times_required = False

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, which is a keyword in Python, and `to`."""
        required = self.are_times_required
        return {**super().get_fields(), "from": Moment(required=required), "to": Moment(required=required)}


class BookingBody(BookingChangeBody):
    """GPUs of a pool for one of your tenants: some places, each for one run."""

    are_times_required = True

    tenant = serializers.CharField(max_length=40)
    pool = serializers.CharField(max_length=40)
    title = serializers.CharField(max_length=LONGEST_TITLE, help_text="What it is for.")
    places = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=MOST_PLACES, help_text="For how many runs."
    )
    gpus_each = serializers.FloatField(
        required=False, default=1.0, min_value=0, max_value=4096, help_text="Of each run; on one node."
    )

    def validate_gpus_each(self, gpus: float) -> Fraction:
        if not isfinite(gpus):
            raise serializers.ValidationError(_("This must be a number."))
        return Fraction(str(gpus))


class PullProblemShape(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)


class WarmImageShape(serializers.Serializer[Any]):
    image = serializers.CharField(help_text="Slug, or the reference of an image by reference.")
    nodes_ready = serializers.IntegerField(help_text="Nodes of the pool that have it.")
    nodes = serializers.IntegerField(help_text="Nodes that are to have it.")
    problem = PullProblemShape(allow_null=True, help_text="Of a node that could not pull it.")


class BookingShape(serializers.Serializer[Any]):
    """A booking. Other tenants' bookings show only what is booked and when: the rest is null."""

    id = serializers.UUIDField(allow_null=True)
    pool = serializers.CharField()
    tenant = serializers.CharField(allow_null=True)
    title = serializers.CharField(allow_null=True)
    places = serializers.IntegerField()
    gpus_each = GPUsField()
    created_by = serializers.CharField(allow_null=True)
    state = serializers.ChoiceField(Booking.State.choices)
    images_warm = WarmImageShape(
        many=True,
        allow_null=True,
        help_text="Images that nodes pull from an hour before it begins, the likeliest first.",
    )

    def get_fields(self) -> dict[str, Any]:
        return {
            **super().get_fields(),
            "from": serializers.DateTimeField(),
            "to": serializers.DateTimeField(),
        }

    def to_representation(self, seen: Seen) -> dict[str, Any]:
        booking = seen.booking
        private = {
            "id": booking.pk,
            "tenant": booking.tenant.slug,
            "title": booking.title,
            "created_by": booking.created_by.get_username(),
            "images_warm": seen.images,
        }
        return super().to_representation(
            {
                **(private if seen.is_own else dict.fromkeys(private)),
                "pool": booking.pool.slug,
                "from": booking.starts_at,
                "to": booking.ends_at,
                "places": booking.places,
                "gpus_each": as_gpus(booking.units_each, booking.pool.units_per_gpu),
                "state": booking.state,
            }
        )
