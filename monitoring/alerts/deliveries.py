"""Recipients of an alert: its routes, and a row for each message that has to go. A row can exist once, so whatever
runs twice tells nobody twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from accounts.models import User
from accounts.notices.preferences import mail_is_configured
from monitoring.models import Alert, AlertDelivery, AlertRoute, Severity

# What begins together is told together.
GATHERED = timedelta(seconds=5)
# An alert that fires again within this time is not told as over.
QUIET = timedelta(minutes=1)
# An alert that was told as over and fires again is told once more if it stays so long.
HELD_BACK = timedelta(minutes=5)

Occasion = AlertDelivery.Occasion
Way = AlertRoute.Way
BY_MAIL = (Way.ADMINS, Way.MAIL)
UNSENT = Q(state=AlertDelivery.State.WAITING)
# While a route is disabled, its messages wait. Its tests do not.
SENDABLE = UNSENT & (Q(route__is_enabled=True) | Q(occasion=Occasion.TEST))


def ensure_default() -> None:
    """Make the route that mails all admins, unless it is there. An admin who wants none of it disables it."""
    if not AlertRoute.objects.filter(way=Way.ADMINS).exists():
        AlertRoute.objects.bulk_create(
            [AlertRoute(name="admins", way=Way.ADMINS, least_severity=Severity.WARNING)],
            ignore_conflicts=True,
        )


def enabled() -> list[AlertRoute]:
    """Return the routes that alerts may take now. Without a mail server nobody gets mail."""
    routes = AlertRoute.objects.filter(is_enabled=True).exclude(way=Way.HEARTBEAT)
    return list(routes if mail_is_configured() else routes.exclude(way__in=BY_MAIL))


def matches(route: AlertRoute, alert: Alert) -> bool:
    """Return True if the route is for such alerts. Pure."""
    return (
        alert.severity >= route.least_severity
        and route.cluster_id in (None, alert.cluster_id)
        and route.tenant_id in (None, alert.tenant_id)
        and (route.pool_id is None or str(route.pool_id) in alert.pools)
    )


def admins() -> list[UUID]:
    """Return the active admins who have a mail address."""
    rows = User.objects.filter(is_staff=True, is_active=True).exclude(email="")
    return list(rows.order_by("pk").values_list("pk", flat=True))


def tell(alerts: Iterable[Alert], routes: Iterable[AlertRoute], occasion: Occasion, due_at: datetime) -> int:
    """Make a delivery for each alert, route and recipient, unless there is one. Return how many were wanted."""
    everyone = admins()
    rows = [
        AlertDelivery(
            alert=alert,
            route=route,
            recipient_id=recipient,
            occasion=occasion,
            round=alert.round,
            due_at=due_at,
        )
        for alert in alerts
        for route in routes
        if matches(route, alert)
        for recipient in (everyone if route.way == Way.ADMINS else [None])
    ]
    AlertDelivery.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def tell_firing(alerts: Iterable[Alert], routes: Iterable[AlertRoute], due_at: datetime) -> None:
    at_once = [route for route in routes if route.escalates_after_minutes is None]
    tell(alerts, at_once, Occasion.FIRING, due_at)


def escalate(alerts: Iterable[Alert], routes: Iterable[AlertRoute], now: datetime) -> Iterator[Alert]:
    """Tell the routes for what nobody acknowledged in time. Yield the alerts that were escalated."""
    later = [route for route in routes if route.escalates_after_minutes is not None]
    for alert in alerts:
        due = [
            route
            for route in later
            if now - alert.round_at >= timedelta(minutes=route.escalates_after_minutes or 0)
        ]
        if due and tell([alert], due, Occasion.ESCALATED, now):
            yield alert


def tell_resolved(alert: Alert, now: datetime, *, by_hand: bool = False) -> None:
    """Tell those who are told that it fires, after that, and after its silence. What was held back is not sent any
    more; if the alert is silenced, or a person resolved it, neither is what nobody tried to send yet. A disabled route
    tells nothing of it, then or later."""
    silenced_until = alert.silenced_until or now
    rows = AlertDelivery.objects.filter(alert=alert, round=alert.round)
    unsent = rows.filter(UNSENT, attempts=0).exclude(occasion=Occasion.RESOLVED)
    is_ended = by_hand or silenced_until > now
    (unsent if is_ended else unsent.filter(due_at__gt=now + GATHERED)).delete()
    rows.filter(UNSENT, route__is_enabled=False).delete()
    told = rows.filter(route__is_enabled=True).exclude(occasion=Occasion.RESOLVED)
    told_to = told.values_list("route_id", "recipient_id").distinct()
    AlertDelivery.objects.bulk_create(
        [
            AlertDelivery(
                alert=alert,
                route_id=route,
                recipient_id=recipient,
                occasion=Occasion.RESOLVED,
                round=alert.round,
                due_at=max(now + QUIET, silenced_until),
            )
            for route, recipient in told_to
        ],
        ignore_conflicts=True,
    )


def take_back_resolved(alert: Alert) -> bool:
    """Drop what was to say that it is over. Return True if somebody was told so already."""
    rows = AlertDelivery.objects.filter(alert=alert, round=alert.round, occasion=Occasion.RESOLVED)
    rows.filter(UNSENT, attempts=0).delete()
    return rows.exists()


def was_told(alert: Alert) -> bool:
    """Return True if a message of this round went out, or is on its way."""
    return AlertDelivery.objects.filter(alert=alert, round=alert.round, attempts__gt=0).exists()


def drop_unsent(alert: Alert) -> None:
    AlertDelivery.objects.filter(UNSENT, alert=alert, attempts=0).delete()
