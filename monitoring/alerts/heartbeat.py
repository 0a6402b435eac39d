"""Heartbeats: routes that call an address every few minutes while all of Berth works.

An outside dead man's switch that misses the call knows that Berth is silent. The watcher's tick asks for the call, a
worker makes it, and both need the database: if one of them is dead, there is no call.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models import F, Q
from django.utils import timezone

from accounts.credentials.secrets import Unreadable, decrypt
from monitoring.alerts import posting
from monitoring.alerts.sending import refused_networks
from monitoring.models import AlertRoute


def due() -> list[UUID]:
    """Return heartbeats that are due, and note that they were asked for."""
    routes = AlertRoute.objects.filter(way=AlertRoute.Way.HEARTBEAT, is_enabled=True)
    now = timezone.now()
    minutes = F("every_minutes") * timedelta(minutes=1)
    rows = routes.filter(
        Q(beat_tried_at=None) | Q(beat_tried_at__lte=now - minutes) | Q(beat_tried_at__gt=now)
    )
    return [pk for pk in rows.values_list("pk", flat=True) if rows.filter(pk=pk).update(beat_tried_at=now)]


def beat(route_id: UUID) -> None:
    """Call the address, and note how that went. The next beat comes in time, so no call is tried again."""
    route = AlertRoute.objects.filter(pk=route_id, is_enabled=True).first()
    if route is None:
        return
    error = call(route)
    changes = {"beat_error": error[:240]} | ({} if error else {"last_beat_at": timezone.now()})
    AlertRoute.objects.filter(pk=route.pk).update(**changes)


def call(route: AlertRoute) -> str:
    """Return what went wrong, or ""."""
    try:
        request = posting.Request(decrypt(route.address), b"", {"User-Agent": "Berth-Alerts/1"}, "GET")
        answer = posting.post(request, refused=refused_networks(route))
    except (Unreadable, posting.NotPosted) as error:
        return str(error)
    return "" if 200 <= answer.status < 300 else f"The receiver answered {answer.status}."
