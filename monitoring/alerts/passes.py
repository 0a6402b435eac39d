"""Marks of passes: each is enqueued once, however many ask for it, and again if a worker died with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from monitoring import enqueue
from monitoring.alerts.deliveries import SENDABLE
from monitoring.models import AlertDelivery, AlertPass
from vitals.clock import is_near_now

LOST_AFTER = timedelta(seconds=15)
ROW = 1


def want() -> None:
    """Enqueue a pass, unless one was enqueued just now."""
    _want("raise_queued_at", enqueue.raise_alerts)


def want_sending() -> None:
    """Enqueue the sending of what is due, unless it was enqueued just now."""
    due = AlertDelivery.objects.filter(SENDABLE, due_at__lte=timezone.now())
    if due.exists():
        _want("send_queued_at", enqueue.send_alerts)


def begins() -> None:
    """Note that a pass reads now: what changes from here on needs another."""
    AlertPass.objects.filter(pk=ROW).update(raise_queued_at=None, raised_at=Now())


def sending_begins() -> None:
    AlertPass.objects.filter(pk=ROW).update(send_queued_at=None)


def _want(mark: str, put: Callable[[], None]) -> None:
    now = timezone.now()
    if not AlertPass.objects.filter(pk=ROW).exists():
        AlertPass.objects.bulk_create([AlertPass(pk=ROW)], ignore_conflicts=True)
    with transaction.atomic():
        if AlertPass.objects.filter(pk=ROW).exclude(is_near_now(mark, now, LOST_AFTER)).update(**{mark: now}):
            put()
