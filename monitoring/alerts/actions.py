"""Actions of a person on an alert. Pages, API and admin call these."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.live import publish
from accounts.locks import locked, one_at_a_time
from accounts.trail import audit
from monitoring.alerts import deliveries
from monitoring.alerts.raising import LIVE
from monitoring.models import Alert

State = Alert.State
LONGEST_SILENCE_MINUTES = 7 * 24 * 60


def acknowledge(actor: Actor, alert: Alert) -> bool:
    """Take the alert on: it is not escalated any more. Return False if that is so already."""
    with transaction.atomic():
        row = _open(alert)
        if row.state == State.ACKNOWLEDGED:
            return False
        row.state, row.silenced_until = State.ACKNOWLEDGED, None
        row.acknowledged_at, row.acknowledged_by = timezone.now(), actor.user
        return _save(actor, row, "acknowledge")


def silence(actor: Actor, alert: Alert, minutes: int) -> bool:
    """Send nothing about the alert for so many minutes. If it still fires then, people are told again; if it ended
    meanwhile, those who knew of it are told so."""
    with transaction.atomic():
        row = _open(alert)
        row.state, row.silenced_until = State.SILENCED, timezone.now() + timedelta(minutes=minutes)
        return _save(actor, row, "silence", minutes=minutes)


def resolve(actor: Actor, alert: Alert) -> bool:
    """Close the alert, though its members may still fire: these open no other one. Return False if it is closed."""
    with transaction.atomic():
        row = _locked(alert)
        if row.state == State.RESOLVED:
            return False
        row.state, row.resolved_at, row.resolved_by = State.RESOLVED, timezone.now(), actor.user
        row.silenced_until = None
        deliveries.tell_resolved(row, timezone.now(), by_hand=True)
        return _save(actor, row, "resolve")


def _locked(alert: Alert) -> Alert:
    one_at_a_time("monitoring.alerts")  # a pass may be about to write the same row
    return locked(Alert.objects.filter(pk=alert.pk)).get()


def _open(alert: Alert) -> Alert:
    row = _locked(alert)
    if row.state == State.RESOLVED:
        raise Conflict(
            "alert_resolved",
            _("This alert is resolved already."),
            _("There is nothing left to do about it."),
        )
    return row


def _save(actor: Actor, row: Alert, verb: str, **data: int) -> bool:
    row.save()
    told = {"code": row.code, "count": row.count, **data}
    audit.record(actor, f"alert.{verb}", target=row, tenant=row.tenant, data=told)
    publish(LIVE, {"type": "alerts.changed"})
    return True
