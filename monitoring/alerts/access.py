"""Rights to see and handle alerts and routes: admins all, owners those of their tenants, others none."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.db.models import QuerySet

from accounts.access import Actor, not_there, owned_tenants
from monitoring.models import Alert, AlertDelivery, AlertRoute

Row = TypeVar("Row", Alert, AlertRoute)


def visible(actor: Actor) -> QuerySet[Alert]:
    return _of(actor, Alert.objects.select_related("cluster", "tenant", "acknowledged_by", "resolved_by"))


def _of(actor: Actor, rows: QuerySet[Row]) -> QuerySet[Row]:
    if actor.is_admin and not _is_bound(actor):
        return rows
    return rows.filter(tenant__in=owned_tenants(actor))


def get(actor: Actor, alert_id: UUID) -> Alert:
    found = visible(actor).filter(pk=alert_id).first()
    if found is None:
        raise not_there()
    return found


def routes(actor: Actor) -> QuerySet[AlertRoute]:
    return _of(actor, AlertRoute.objects.select_related("cluster", "pool", "tenant"))


def get_route(actor: Actor, route_id: UUID) -> AlertRoute:
    found = routes(actor).filter(pk=route_id).first()
    if found is None:
        raise not_there()
    return found


def deliveries(actor: Actor) -> QuerySet[AlertDelivery]:
    """Return messages by the actor's routes: an owner does not see whom the admins' routes reach."""
    rows = AlertDelivery.objects.select_related("route", "recipient")
    return rows.filter(route__in=routes(actor))


def _is_bound(actor: Actor) -> bool:
    """Return True for a token that is bound to one tenant, an admin's too."""
    return actor.token is not None and actor.token.tenant_id is not None
