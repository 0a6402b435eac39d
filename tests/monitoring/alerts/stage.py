"""Firings of the tests, and passes at chosen times."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from monitoring.alerts import raising, sending
from monitoring.alerts.firing import Firing
from monitoring.models import Alert, AlertDelivery, AlertMember, AlertRoute, Severity


class Firings(dict[str, Firing]):
    """Firings by key."""

    def add(self, number: int = 1, code: str = "node_lost", **more: Any) -> Firing:
        key = f"{more.get('cluster_id')}/{number}/{code}"
        self[key] = Firing(
            key=key,
            code=code,
            since=timezone.now(),
            node=f"gpu-{number}",
            **{"severity": Severity.CRITICAL, **more},
        )
        return self[key]

    def end(self, one: Firing) -> None:
        del self[one.key]


def look() -> None:
    raising.look()


def later(span: timedelta) -> None:
    """Let so much time pass for all that is in rows."""
    AlertMember.objects.update(since=F("since") - span, ended_at=F("ended_at") - span)
    for model, names in (
        (
            Alert,
            (
                "since",
                "last_at",
                "round_at",
                "resolved_at",
                "silenced_until",
                "acknowledged_at",
                "escalated_at",
            ),
        ),
        (AlertDelivery, ("created_at", "due_at", "sent_at")),
        (AlertRoute, ("beat_tried_at", "last_beat_at")),
    ):
        for row in model._default_manager.all():
            moved = {name: getattr(row, name) - span for name in names if getattr(row, name) is not None}
            model._default_manager.filter(pk=row.pk).update(**moved)


def send(after: timedelta = timedelta(seconds=10)) -> None:
    """Send what is due within this time."""
    later(after)
    sending.send_due()


def alert(**by: Any) -> Alert:
    return Alert.objects.get(**by)


def told(alert_id: UUID) -> list[tuple[str, str]]:
    rows = AlertDelivery.objects.filter(alert=alert_id).order_by("created_at", "pk")
    return list(rows.values_list("occasion", "state"))
