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
    BUDGET = "budget", _("budget nearly or fully used")
    BOOKING = "booking", _("GPUs booked")
    HEALTH = "health", _("GPU or node unhealthy")
    JOB = "job", _("job over")
    VOLUME = "volume", _("volume received")
    SHARE = "share", _("workspace shared")
    SERVICE = "service", _("service account stopped")

    @property
    def when(self) -> str:
        """Sentence for people about the event that causes such a notice."""
        return str(WHEN[self])


WHEN = {
    Kind.READY: _("Your workspace is ready"),
    Kind.FAILED: _("Your workspace could not start"),
    Kind.STOPPED: _("Your workspace was stopped or interrupted by someone else or by the system"),
    Kind.STOPS_SOON: _("Your workspace stops soon: its lifetime ends, or it is idle"),
    Kind.QUOTA: _("The quota of your tenant changed"),
    Kind.BOOKING: _("GPUs are booked for your tenant, or you may have to return some for a booking"),
    Kind.HEALTH: _("There is a problem with the GPU, node or storage of your workspace or job"),
    Kind.JOB: _("Your job has succeeded or failed, or was cancelled by someone else"),
    Kind.VOLUME: _("You have become the owner of a volume"),
    Kind.SHARE: _("A colleague shares a workspace with you, or no longer does"),
    Kind.SERVICE: _("A service account of a tenant that you own stopped working"),
    Kind.BUDGET: _("Your GPU-hours of this month, or those of a tenant that you own, are nearly used up"),
}


class Ways(NamedTuple):
    """Ways to notify a person: in Berth (the list, and if allowed a browser notification) and by mail."""

    in_berth: bool
    by_mail: bool


# By mail goes what a person would want to know while they do not look at Berth: all but a changed quota.
DEFAULTS = {kind: Ways(in_berth=True, by_mail=kind != Kind.QUOTA) for kind in Kind}
