"""Alerts, their members, routes and deliveries as the API gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Window
from django.db.models.functions import RowNumber

from monitoring.alerts import words
from monitoring.models import Alert, AlertDelivery, AlertMember, AlertRoute, Severity
from quotas.models import Pool

MOST_NAMED = 20


def alerts_json(alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    """Return the alerts with the names of their first members, in two queries for all."""
    names: dict[Any, list[str]] = {alert.pk: [] for alert in alerts}
    place = Window(RowNumber(), partition_by="alert", order_by=["since", "pk"])
    first = AlertMember.objects.filter(alert__in=names).annotate(place=place).filter(place__lte=MOST_NAMED)
    for alert_id, node, name in first.order_by("alert", "place").values_list("alert_id", "node", "name"):
        if (told := node or name) and told not in names[alert_id]:
            names[alert_id].append(told)
    slugs = {str(pk): slug for pk, slug in Pool.objects.values_list("pk", "slug")}
    return [_alert_json(alert, names[alert.pk], slugs) for alert in alerts]


def alert_json(alert: Alert) -> dict[str, Any]:
    return alerts_json([alert])[0]


def _alert_json(alert: Alert, names: list[str], slugs: dict[str, str]) -> dict[str, Any]:
    return {
        "id": alert.pk,
        "code": alert.code,
        "message": words.sentence(alert.code, alert.data),
        "hint": words.hint(alert.code, alert.data),
        "severity": Severity(alert.severity).word,
        "state": alert.state,
        "cluster": alert.cluster.slug if alert.cluster else None,
        "pools": sorted(slugs[pk] for pk in alert.pools if pk in slugs),
        "tenant": alert.tenant.slug if alert.tenant else None,
        "count": alert.count,
        "still_firing": alert.open_count,
        "names": names,
        "since": alert.since,
        "last_at": alert.last_at,
        "acknowledged_by": alert.acknowledged_by.username if alert.acknowledged_by else None,
        "acknowledged_at": alert.acknowledged_at,
        "silenced_until": alert.silenced_until,
        "escalated_at": alert.escalated_at,
        "resolved_by": alert.resolved_by.username if alert.resolved_by else None,
        "resolved_at": alert.resolved_at,
    }


def member_json(member: AlertMember) -> dict[str, Any]:
    return {
        "code": member.code,
        "message": words.sentence(member.code, member.data),
        "severity": Severity(member.severity).word,
        "node": member.node or None,
        "name": member.name or None,
        "since": member.since,
        "ended_at": member.ended_at,
    }


def delivery_json(delivery: AlertDelivery) -> dict[str, Any]:
    return {
        "id": delivery.pk,
        "alert": delivery.alert_id,
        "route": delivery.route_id,
        "occasion": delivery.occasion,
        "to": delivery.recipient.username if delivery.recipient else delivery.route.host,
        "message_id": delivery.batch,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "status_code": delivery.status_code,
        "error": delivery.error,
        "created_at": delivery.created_at,
        "due_at": delivery.due_at,
        "sent_at": delivery.sent_at,
    }


def route_json(route: AlertRoute) -> dict[str, Any]:
    """Return the route without its address and secret: of the address, the host alone."""
    return {
        "id": route.pk,
        "name": route.name,
        "way": route.way,
        "host": route.host,
        "has_secret": bool(route.secret),
        "least_severity": Severity(route.least_severity).word,
        "cluster": route.cluster.slug if route.cluster else None,
        "pool": route.pool.slug if route.pool else None,
        "tenant": route.tenant.slug if route.tenant else None,
        "escalates_after_minutes": route.escalates_after_minutes,
        "every_minutes": route.every_minutes if route.way == AlertRoute.Way.HEARTBEAT else None,
        "enabled": route.is_enabled,
        "last_beat_at": route.last_beat_at,
        "beat_error": route.beat_error,
        "created_at": route.created_at,
    }
