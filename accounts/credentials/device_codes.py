"""Sign-in of a terminal by a code that a signed-in person confirms in their browser, as in RFC 8628.

The terminal has a long secret, the person a short code to compare. A request lives ten minutes and gives one token. Of
its person the terminal hears nothing before they allow it, and an unknown code is answered as one that has expired.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import CharField, Count, Func
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.addresses import district, neighbourhood
from accounts.credentials import tokens
from accounts.credentials.sign_in import still
from accounts.errors import Invalid, NotSignedIn, Refusal, TooMany
from accounts.locks import forget, locked
from accounts.models import APIToken, DeviceCode, Scope, User
from accounts.rest import rates
from accounts.trail import audit

LIFETIME = timedelta(minutes=10)
POLL_SECONDS = 2
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels: no words; no digits: none looks like a letter
LENGTH = 8
MOST_OPEN = 10_000  # of all people together
BEGUN_PER_MINUTE = 20  # from one address, or /64 of IPv6
BEGUN_PER_SITE_AND_MINUTE = 200  # from one /48 of IPv6
LOOKED_UP_PER_MINUTE = 10  # by one person
POLLED_PER_MINUTE = 60  # with one code
DEFAULT_SCOPES = (Scope.READ, Scope.WORKSPACES, Scope.JOBS, Scope.VOLUMES)


@dataclass(frozen=True)
class Begun:
    device_code: str
    user_code: str


def begin(name: str, scopes: Sequence[str]) -> Begun:
    """Begin the sign-in of a terminal. Raise TooMany if too many were begun from its address, or are open."""
    address = audit.client_address.get()
    if address is not None:
        rates.count(f"device/{neighbourhood(address)}", BEGUN_PER_MINUTE)
        rates.count(f"device-site/{district(address)}", BEGUN_PER_SITE_AND_MINUTE)
    tokens.check_name(name)
    now = timezone.now()
    forget(DeviceCode.objects.filter(expires_at__lt=now))
    if DeviceCode.objects.count() >= MOST_OPEN and not _forget_of_the_most():
        raise TooMany(
            "too_many_codes",
            _("Too many sign-ins wait to be confirmed."),
            _("Try again in some minutes."),
            retry_after_seconds=60,
        )
    device_code, user_code = secrets.token_urlsafe(32), new_user_code()
    DeviceCode.objects.create(
        digest=tokens.digest(device_code),
        user_code=user_code,
        name=name,
        scopes=[scope for scope in Scope.values if scope in scopes],
        address=address,
        expires_at=now + LIFETIME,
    )
    return Begun(device_code, shown(user_code))


class _Site(Func):
    """The network that an address counts to when there are too many codes: itself, or its /48 of IPv6."""

    template = "text(set_masklen(%(expressions)s::cidr, LEAST(masklen(%(expressions)s), 48)))"
    output_field = CharField()


def _forget_of_the_most() -> bool:
    """Delete the oldest unanswered code of the network that has most of them, so that who floods loses their own."""
    unanswered = DeviceCode.objects.filter(user=None).annotate(site=_Site("address"))
    most = unanswered.values("site").annotate(count=Count("pk")).order_by("-count").first()
    if most is None:
        return False
    of_it = unanswered.filter(site=most["site"]) if most["site"] else unanswered.filter(address=None)
    oldest = of_it.order_by("expires_at").values_list("pk", flat=True).first()
    DeviceCode.objects.filter(pk=oldest, user=None).delete()
    return True


def new_user_code() -> str:
    return "".join(secrets.choice(LETTERS) for _index in range(LENGTH))


def shown(user_code: str) -> str:
    """Return a code as people read it: `BCDF-GHJK`."""
    return f"{user_code[:4]}-{user_code[4:]}"


def plain(text: str) -> str:
    """Return a code as it is stored, from whatever form a person typed it in."""
    return "".join(one for one in text.upper() if one.isalnum())


def waiting(actor: Actor, user_code: str) -> DeviceCode:
    """Return the request of a code that nobody has answered yet. Raise Invalid, or TooMany for a person who guesses."""
    rates.count(f"device-code/{actor.user.pk}", LOOKED_UP_PER_MINUTE)
    open_ones = DeviceCode.objects.filter(expires_at__gt=timezone.now(), user=None)
    found = open_ones.filter(user_code=plain(user_code)).first()
    if found is None:
        raise _unknown()
    return found


def _unknown() -> Invalid:
    message = _("This code is not valid, or no longer.")
    hint = _("Compare it with the one in your terminal, or run berth login again.")
    return Invalid("code_unknown", message, hint, fields={"code": [f"{message} {hint}"]})


def allow(actor: Actor, user_code: str) -> DeviceCode:
    """Let the terminal of this code act as the person. Raise Invalid as `waiting` does, or if a scope is not theirs."""
    request = waiting(actor, user_code)
    tokens.check(actor.user, request.name, request.scopes, None, tokens.DEFAULT_DAYS)
    with transaction.atomic():
        answered = {"user": actor.user, "session_row": actor.session_row}
        if not DeviceCode.objects.filter(pk=request.pk, user=None).update(**answered):
            raise _unknown()  # somebody was faster
        audit.record(actor, "device.allow", data=_of(request))
    return request


def refuse(actor: Actor, user_code: str) -> None:
    request = waiting(actor, user_code)
    with transaction.atomic():
        if DeviceCode.objects.filter(pk=request.pk, user=None).delete()[0]:
            audit.record(actor, "device.refuse", data=_of(request))


def _of(request: DeviceCode) -> dict[str, str]:
    return {"name": request.name, "address": request.address or "?"}


def redeem(device_code: str) -> tuple[APIToken, str]:
    """Return a new token and its secret, once. Raise Refusal with a code of RFC 8628 if there is none (yet)."""
    row = DeviceCode.objects.filter(digest=tokens.digest(device_code), expires_at__gt=timezone.now()).first()
    if row is None:
        raise _over()
    rates.count(f"device-poll/{row.digest}", POLLED_PER_MINUTE)
    if row.user_id is None:
        raise Refusal(
            "authorization_pending",
            _("Nobody has confirmed this code yet."),
            _("Open the address in a browser, and ask again in some seconds."),
            retry_after_seconds=POLL_SECONDS,
        )
    with transaction.atomic():
        user = locked(User.objects.all()).get(pk=row.user_id)
        if not DeviceCode.objects.filter(pk=row.pk).delete()[0]:
            raise _over()
        try:
            actor = still(Actor(user, session_row=row.session_row))
        except NotSignedIn:
            raise _over() from None
        return tokens.create(actor, row.name, row.scopes, None, tokens.DEFAULT_DAYS)


def _over() -> Refusal:
    """Return the same for a code that is unknown, used, refused or expired."""
    return Refusal(
        "expired_token",
        _("This sign-in was not confirmed in time, or was refused."),
        _("Run berth login again."),
    )
