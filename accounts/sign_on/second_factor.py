"""Second factor for people who sign in with a password: codes of an authenticator app (TOTP), and recovery codes.

allauth.mfa stores them and computes the codes. This module adds the rest: each code works once, secrets are encrypted,
guessing is slowed down as it is for passwords, and every change is in the trail.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import DefaultMFAAdapter, get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import signals
from accounts.access import Actor
from accounts.credentials import secrets, sessions, sign_in
from accounts.errors import Conflict, Invalid, NotAllowed
from accounts.locks import for_change, locked
from accounts.models import User
from accounts.trail import audit

LAST_COUNTER = "last_counter"


class Adapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Adapter that makes allauth.mfa use our encryption and labels."""

    def encrypt(self, text: str) -> str:
        return secrets.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return secrets.decrypt(encrypted_text)

    def get_totp_label(self, user: Any) -> str:
        return str(user.get_username())

    def get_totp_issuer(self) -> str:
        return "Berth"


@dataclass(frozen=True)
class Offer:
    """Secret for an authenticator app, as a picture, and as text for people who cannot scan it."""

    secret: str
    picture: str

    @property
    def in_groups_of_four(self) -> str:
        return " ".join(self.secret[start : start + 4] for start in range(0, len(self.secret), 4))


def new_secret() -> str:
    return str(totp.generate_totp_secret())


def offer(user: User, secret: str) -> Offer:
    adapter = get_adapter()
    svg = adapter.build_totp_svg(adapter.build_totp_url(user, secret))
    return Offer(secret, "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode())


def is_on(user: User) -> bool:
    return bool(Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists())


def people_with_one(people: Iterable[User]) -> set[UUID]:
    found = Authenticator.objects.filter(user__in=people, type=Authenticator.Type.TOTP)
    return set(found.values_list("user", flat=True))


def is_demanded(user: User) -> bool:
    return bool(settings.STAFF_NEED_SECOND_FACTOR and user.is_staff)


def recovery_codes_left(user: User) -> int:
    found = Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).first()
    return len(found.wrap().get_unused_codes()) if found else 0


def turn_on(user: User, secret: str, code: str) -> list[str]:
    """Turn on the second factor. Return the recovery codes, which are shown once. Raise Invalid if `code` is wrong."""
    counter = _counter_of(secret, code)
    if counter is None:
        raise _wrong_code()
    with transaction.atomic():
        locked(User.objects.all()).get(pk=user.pk)
        if is_on(user):
            raise Conflict(
                "second_factor_on",
                _("A second factor is set up already."),
                _("Remove it first to use another app."),
            )
        authenticator = totp.TOTP.activate(user, secret).instance
        authenticator.data[LAST_COUNTER] = counter
        authenticator.save(update_fields=["data"])
        codes = _fresh_recovery_codes(user)
        audit.record(Actor(user), "second-factor.on", target=user)
    return codes


def renew_recovery_codes(user: User) -> list[str]:
    """Return new recovery codes; the old ones stop working."""
    with transaction.atomic():
        locked(User.objects.all()).get(pk=user.pk)
        codes = _fresh_recovery_codes(user)
        audit.record(Actor(user), "second-factor.recovery-codes", target=user)
    return codes


def turn_off(user: User) -> None:
    if is_demanded(user):
        raise NotAllowed(
            "second_factor_demanded",
            _("Admins need a second factor here."),
            _(
                "To use another phone, ask another admin to reset it: you set it up again at your next sign-in."
            ),
        )
    with transaction.atomic():
        for_change(Authenticator.objects.filter(user=user)).delete()
        audit.record(Actor(user), "second-factor.off", target=user)


def reset(actor: Actor | None, user: User) -> None:
    """Remove the second factor of a person who lost phone and recovery codes, and end their sessions. `actor` is None
    for an operator at the command line."""
    if actor is not None:
        actor.require_admin()
        require_reset(actor, user)
    with transaction.atomic():
        sessions.end_all(user)
        for_change(Authenticator.objects.filter(user=user)).delete()
        audit.record(actor, "second-factor.reset", target=user, data={"username": user.username})
        signals.send_access_changed(user)


def require_reset(actor: Actor, person: User) -> None:
    """Raise Refusal if the actor may not reset how the person signs in: never their own way, and by a token no admin's.
    A token that leaked would become a sign-in that outlives it."""
    if person == actor.user:
        raise Conflict(
            "yourself",
            _("You cannot reset your own sign-in here."),
            _("Change it in your profile, in the browser."),
        )
    if person.is_staff and actor.token is not None:
        raise NotAllowed(
            "no_token_for_admins",
            _("A token cannot reset the sign-in of an admin."),
            _("Do it in the browser, in the admin's list of people."),
        )


def check(user: User, code: str) -> None:
    """Check a code of the app or a recovery code; each works once. Wrong ones are counted, and refused after a few."""
    with sign_in.counted_code(user):
        if not _is_right(user, code.replace(" ", "").replace("-", "")):
            raise _wrong_code()


def _is_right(user: User, code: str) -> bool:
    with transaction.atomic():
        factors = {row.type: row for row in locked(Authenticator.objects.filter(user=user))}
        app = factors.get(Authenticator.Type.TOTP)
        if app is None:
            return False
        counter = _counter_of(secrets.decrypt(app.data["secret"]), code)
        if counter is not None and counter > app.data.get(LAST_COUNTER, 0):
            app.data[LAST_COUNTER] = counter
            app.save(update_fields=["data"])
            app.record_usage()
            return True
        recovery = factors.get(Authenticator.Type.RECOVERY_CODES)
        if recovery is not None and recovery.wrap().validate_code(code):
            audit.record(Actor(user), "second-factor.recovery-code-used", target=user)
            return True
    return False


def _counter_of(secret: str, code: str) -> int | None:
    """Return the counter of the half minute that the code belongs to, or None."""
    for counter in totp.yield_hotp_counters_from_time():
        if compare_user_code(actual=code, expected=totp.format_hotp_value(totp.hotp_value(secret, counter))):
            return int(counter)
    return None


def _fresh_recovery_codes(user: User) -> list[str]:
    Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).delete()
    codes: list[str] = RecoveryCodes.activate(user).generate_codes()
    return codes


def _wrong_code() -> Invalid:
    text = _("This code is incorrect or was already used.")
    return Invalid(
        "wrong_code",
        text,
        _("Enter the code that the app shows now. The clock of your phone must be right."),
        fields={"code": [text]},
    )
