"""GPUs of a pool reserved for a tenant for a fixed time: for a class, or before a deadline."""

from __future__ import annotations

import uuid
from fractions import Fraction
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.models import Tenant

from .pools import Pool


class Booking(models.Model):
    """Places for one run each, of `units_each` units on one node. They count within the tenant's quota."""

    class State(models.TextChoices):
        UPCOMING = "upcoming", _("upcoming")
        RUNNING = "running", pgettext_lazy("a booking", "now")
        OVER = "over", _("over")
        CANCELLED = "cancelled", _("cancelled")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="bookings", verbose_name=_("pool"))
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="bookings", verbose_name=_("tenant")
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", verbose_name=_("booked by")
    )
    title = models.CharField(_("title"), max_length=120)
    starts_at = models.DateTimeField(_("from"))
    ends_at = models.DateTimeField(_("to"))
    places = models.PositiveIntegerField(_("places"), default=1)
    units_each = models.PositiveIntegerField(_("units per place"))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    cancelled_at = models.DateTimeField(_("cancelled at"), null=True)

    class Meta:
        verbose_name = _("booking")
        verbose_name_plural = _("bookings")
        ordering: ClassVar = ["starts_at", "id"]
        indexes: ClassVar = [models.Index(fields=["pool", "ends_at"], name="booking_pool_ends")]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="booking_ends_after_start"),
            models.CheckConstraint(
                condition=Q(places__gte=1) & Q(units_each__gte=1), name="booking_of_something"
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def state(self) -> State:
        now = timezone.now()
        if self.cancelled_at is not None:
            return self.State.CANCELLED
        if self.ends_at <= now:
            return self.State.OVER
        return self.State.RUNNING if self.starts_at <= now else self.State.UPCOMING

    @property
    def gpus_each(self) -> Fraction:
        return self.pool.gpus(self.units_each)

    @classmethod
    def in_state(cls, state: str) -> Q:
        """Return the database condition for a state."""
        now = timezone.now()
        if state == cls.State.CANCELLED:
            return Q(cancelled_at__isnull=False)
        when = {
            cls.State.UPCOMING: Q(starts_at__gt=now),
            cls.State.RUNNING: Q(starts_at__lte=now, ends_at__gt=now),
            cls.State.OVER: Q(ends_at__lte=now),
        }
        return Q(cancelled_at=None) & when[cls.State(state)]
