"""The kinds of notices, and what people get of each until they choose otherwise."""

from __future__ import annotations

from typing import NamedTuple

from django.db import models
from django.utils.translation import gettext_lazy as _


class Kind(models.TextChoices):
    READY = "ready", _("ready")
    FAILED = "failed", _("failed")
    STOPPED = "stopped", _("stopped or interrupted")
    STOPS_SOON = "stops_soon", _("stops soon")
    QUOTA = "quota", _("quota changed")
    BUDGET = "budget", _("budget nearly or wholly spent")
    BOOKING = "booking", _("GPUs booked")
    HEALTH = "health", _("GPU or node not well")

    @property
    def when(self) -> str:
        """When its person hears of it, said to them."""
        return str(WHEN[self])


WHEN = {
    Kind.READY: _("A workspace of yours is ready"),
    Kind.FAILED: _("A workspace of yours could not start, or was given up"),
    Kind.STOPPED: _("A workspace of yours was stopped or interrupted, and not by you"),
    Kind.STOPS_SOON: _("The lifetime of a workspace of yours is nearly over"),
    Kind.QUOTA: _("What your tenant may use became more or less"),
    Kind.BOOKING: _("GPUs are booked for your tenant, or you may have to give some back for a booking"),
    Kind.HEALTH: _("Something is wrong with the GPU, node or storage that a workspace of yours runs on"),
    Kind.BUDGET: _("The GPU-hours of a month, yours or those of a tenant that you own, are nearly spent"),
}


class Ways(NamedTuple):
    """How to tell somebody: in Berth (its list, and where allowed a notification of the browser) and by mail."""

    in_berth: bool
    by_mail: bool


# What happens while somebody looks is for the browser; what they would want to know elsewhere is worth a mail.
DEFAULTS = {
    Kind.READY: Ways(in_berth=True, by_mail=True),
    Kind.FAILED: Ways(in_berth=True, by_mail=True),
    Kind.STOPPED: Ways(in_berth=True, by_mail=True),
    Kind.STOPS_SOON: Ways(in_berth=True, by_mail=True),
    Kind.QUOTA: Ways(in_berth=True, by_mail=False),
    Kind.BUDGET: Ways(in_berth=True, by_mail=True),
    Kind.BOOKING: Ways(in_berth=True, by_mail=True),
    Kind.HEALTH: Ways(in_berth=True, by_mail=True),
}
