"""Tickets for one use that open a websocket: a script's token must not be in an address, which logs keep."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.credentials import tokens
from accounts.credentials.sign_in import still
from accounts.errors import NotSignedIn, TooMany
from accounts.locks import forget, locked
from accounts.models import SocketTicket, User

LIFETIME = timedelta(seconds=60)
KEPT = timedelta(minutes=10)  # long enough to say “expired” and not “unknown”
MOST_UNUSED = 32  # of a person at once


@transaction.atomic
def issue(actor: Actor) -> tuple[str, datetime]:
    """Return a new ticket and its expiry. It opens what its maker may see, while their token or session lasts.

    Raise TooMany if the person has MOST_UNUSED that were not used yet.
    """
    now = timezone.now()
    locked(User.objects.all()).get(pk=actor.user.pk)  # one at a time, or the limit could be passed
    unused = SocketTicket.objects.filter(user=actor.user, expires_at__gt=now).order_by("expires_at")
    require_few(list(unused.values_list("expires_at", flat=True)[:MOST_UNUSED]), MOST_UNUSED, now)
    forget(SocketTicket.objects.filter(expires_at__lt=now - KEPT))
    ticket = secrets.token_urlsafe(32)
    row = SocketTicket.objects.create(
        digest=tokens.digest(ticket),
        user=actor.user,
        token=actor.token,
        session_row=actor.session_row,
        expires_at=now + LIFETIME,
    )
    return ticket, row.expires_at


def require_few(unused: Sequence[datetime], most: int, now: datetime) -> None:
    """Raise TooMany until the first of these tickets expires, if there are `most` or more."""
    if len(unused) >= most:
        raise TooMany(
            "too_many_tickets",
            _("You have %(count)d tickets that were not used yet.") % {"count": most},
            _("Use those that you have, or wait until one expires: each lasts one minute."),
            retry_after_seconds=max(1, ceil((min(unused) - now).total_seconds())),
        )


def redeem(ticket: str) -> Actor:
    """Use the ticket and return its actor. Raise NotSignedIn with code `ticket_expired` or `ticket_unknown`."""
    row = (
        SocketTicket.objects.select_related("user", "token__user")
        .filter(digest=tokens.digest(ticket))
        .first()
    )
    if row is not None and row.expires_at <= timezone.now():
        raise NotSignedIn("ticket_expired", _("This ticket has expired."), _("Ask for a new one."))
    if row is None or not _still_valid(row) or not _use(row):
        raise NotSignedIn(
            "ticket_unknown",
            _("This ticket is unknown or was used already."),
            _("Ask for a new one; each opens one websocket."),
        )
    return actor_of(row)


def actor_of(row: SocketTicket) -> Actor:
    return Actor(row.user, row.token, row.session_row)


def _still_valid(row: SocketTicket) -> bool:
    try:
        return bool(still(actor_of(row)))
    except NotSignedIn:
        return False


def _use(row: SocketTicket) -> bool:
    """Delete the row. Return True to only one of two callers with the same ticket."""
    deleted, _by_model = SocketTicket.objects.filter(digest=row.digest).delete()
    return deleted == 1
