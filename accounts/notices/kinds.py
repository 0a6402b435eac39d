"""Kinds of notices, and the default ways of sending each."""

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
        """Sentence for people about the event that causes such a notice."""
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
    """Ways to notify a person: in Berth (the list, and if allowed a browser notification) and by mail."""

    in_berth: bool
    by_mail: bool


# By mail goes what a person would want to know while they do not look at Berth.
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
