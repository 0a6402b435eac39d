"""Rate limits, counted in PostgreSQL and so for all processes together: one upsert for each request.

A row is a bucket, and holds the time at which it will be empty. Each request adds its share of a minute, and the clock
drains the bucket. A request that would fill it beyond one minute is refused. A person's tokens share their buckets, so
that more tokens do not allow more requests. The person's browser has its own, so that a script does not block it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.access import Actor
from accounts.addresses import neighbourhood
from accounts.errors import TooMany
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.trail.audit import client_address

TOO_OFTEN = "too_often"
# Unused buckets are deleted, a few at a time, when a new bucket is created.
FORGET = (
    "DELETE FROM accounts_rate WHERE bucket IN (SELECT bucket FROM accounts_rate"
    " WHERE empty_at < clock_timestamp() - interval '1 hour' LIMIT 100 FOR UPDATE SKIP LOCKED)"
)
POUR = """
    INSERT INTO accounts_rate AS rate (bucket, empty_at)
    VALUES (%(bucket)s, clock_timestamp() + %(share)s * interval '1 second')
    ON CONFLICT (bucket) DO UPDATE
    SET empty_at = greatest(rate.empty_at, clock_timestamp()) + %(share)s * interval '1 second'
    WHERE rate.empty_at + %(share)s * interval '1 second' <= clock_timestamp() + interval '1 minute'
    RETURNING xmax = 0
"""
ROOM_IN = """
    SELECT extract(epoch FROM empty_at - clock_timestamp()) + %(share)s - 60
    FROM accounts_rate WHERE bucket = %(bucket)s
"""


class WithinRate(BasePermission):
    """Permission that is checked before all others, so that refused requests are counted too."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.user.is_authenticated:
            count_request(request._request, actor_of(request), type(view))
        else:
            count_stranger()
        return True


def count_request(request: HttpRequest, actor: Actor, view: type) -> None:
    """Count a request once, even if middleware and permission both call this."""
    if getattr(request, "is_counted", False):
        return
    request.is_counted = True  # type: ignore[attr-defined]
    means = "token" if actor.token is not None else "browser"
    kind = kind_of(str(request.method), view)
    # Service accounts share the buckets of the owner who answers for them.
    whose = actor.user.responsible_id or actor.user.pk
    count(f"{kind}/{means}/{whose}", settings.API_RATES[kind])


def kind_of(method: str, view: type) -> str:
    """Return read, write or launch. A view sets `is_launch` if its POST queues work, scope READ if it only reads."""
    if method in SAFE_METHODS or getattr(view, "write_scope", None) == Scope.READ:
        return "read"
    return "launch" if getattr(view, "is_launch", False) else "write"


def count_stranger() -> None:
    """Count a request without sign-in, by its address; an IPv6 network counts as one."""
    address = client_address.get()
    if address is not None:
        count(f"stranger/{neighbourhood(address)}", settings.API_RATES["stranger"])


def count(bucket: str, per_minute: int, refusal: Callable[[int, int], TooMany] | None = None) -> None:
    """Count one request. Raise TooMany if the bucket is full. `per_minute` 0 means no limit.

    `refusal` makes the error from the limit and the seconds to wait.
    """
    if not per_minute:
        return
    values: dict[str, str | float] = {"bucket": bucket, "share": 60 / per_minute}
    with connection.cursor() as cursor:
        cursor.execute(POUR, values)
        poured = cursor.fetchone()
        if poured is not None:
            if poured[0]:
                cursor.execute(FORGET)
            return
        cursor.execute(ROOM_IN, values)
        (seconds,) = cursor.fetchone() or (0,)
    raise (refusal or too_often)(per_minute, max(1, ceil(seconds)))


def too_often(per_minute: int, seconds: int) -> TooMany:
    return TooMany(
        TOO_OFTEN,
        ngettext(
            "Too many requests: one request per minute is allowed.",
            "Too many requests: %(count)d requests per minute are allowed.",
            per_minute,
        )
        % {"count": per_minute},
        _("Wait for the time in Retry-After, then send requests more slowly."),
        retry_after_seconds=seconds,
    )
