"""Sign-in by name and password, then by a code, with limits that slow down guessing.

Failures are counted in rows, so all web processes see the same; accounts/credentials/guessing.py has the limits. An
attempt is counted before the password is checked, so that many at once cannot pass a limit together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate as check_password
from django.contrib.auth import get_user, load_backend
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.addresses import neighbourhood
from accounts.credentials import devices, guessing, sessions
from accounts.credentials.guessing import WINDOW, Attempt
from accounts.credentials.tokens import is_usable
from accounts.errors import NotAllowed, NotSignedIn, Refusal, TooMany
from accounts.locks import forget, one_at_a_time
from accounts.models import APIToken, AuditEntry, SignInFailure, User
from accounts.trail import audit

# Where passwords are, in the order in which they are asked (settings.AUTHENTICATION_BACKENDS): Berth's own, then those
# of the LDAP directory.
BERTH = "django.contrib.auth.backends.ModelBackend"
DIRECTORY = "accounts.directory.backend.DirectoryBackend"


class _Copy(dict[str, Any]):
    """A copy of a session, for reading. Django may write to a session: after a new SECRET_KEY it gives it a new key.
    No browser would get that key here, so its person would be signed out."""

    def cycle_key(self) -> None:
        pass

    def flush(self) -> None:
        pass


def person_of(session_row: str) -> User | None:
    """Return the person signed in by the session of this row (`sessions.stored_as`), by Django's own checks: it has not
    expired, the password is the same."""
    user = get_user(SimpleNamespace(session=_Copy(sessions.kept_in(session_row))))  # type: ignore[arg-type]
    return user if isinstance(user, User) and user.is_active else None


def still(actor: Actor) -> Actor:
    """Return the actor from the current rows. Raise NotSignedIn if the person, their token, or their session ended."""
    user = User.objects.filter(pk=actor.user.pk, is_active=True).first()
    token = APIToken.objects.filter(pk=actor.token.pk).first() if actor.token else None
    if actor.token is not None:
        has_ended = token is None or not is_usable(token)
    else:
        has_ended = actor.session_row != "" and person_of(actor.session_row) is None
    if user is None or has_ended:
        raise not_signed_in()
    return Actor(user, token, actor.session_row)


def not_signed_in() -> NotSignedIn:
    return NotSignedIn("not_signed_in", _("You are not signed in."), _("Sign in."))


def authenticate(request: HttpRequest | None, username: str, password: str) -> User:
    """Return the person of this name and password. A refusal does not reveal whether the name exists."""
    device = devices.known(request, username)
    attempt = guessing.at_password(username, _neighbourhood(), device)
    return _checked(request, attempt, username, password)


def confirm(user: User, password: str) -> None:
    """Check the password of a signed-in person, before changes that a stolen session must not make."""
    attempt = guessing.at_password_of_signed_in(user.pk, _neighbourhood())
    try:
        _checked(None, attempt, user.username, password, person=user)
    except NotSignedIn:
        text = _("Incorrect password.")
        hint = _("Check it; upper and lower case matter.")
        raise NotSignedIn("wrong_password", text, hint, fields={"password": [f"{text} {hint}"]}) from None


def way_of(user: User) -> str:
    """Return how the person came in who was just authenticated, as the trail names it."""
    return "ldap" if getattr(user, "backend", "") == DIRECTORY else "password"


def _checked(
    request: HttpRequest | None, attempt: Attempt, username: str, password: str, person: User | None = None
) -> User:
    _count(attempt, username)
    asked = {"username": username, "password": password, "person": person}
    try:
        user = _proven(request, asked)
    except Refusal as refused:
        record_refused(username, refused)
        raise
    if user is None:
        refusal: Refusal = NotSignedIn(
            "sign_in_refused",
            _("Incorrect user name or password."),
            _("Check both; upper and lower case matter. An admin can set a new password."),
        )
        record_refused(username, refusal)
        raise refusal
    _forget(attempt)
    if not _may_use_password(user):
        refusal = NotAllowed(
            "passwords_for_admins",
            _("Only admins can sign in with a password here."),
            _("Use the button above."),
        )
        record_refused(username, refusal)
        raise refusal
    return user


def _proven(request: HttpRequest | None, asked: dict[str, Any]) -> User | None:
    """Return the person whose password it is, in Berth or in the directory. Where there is a directory, a password of
    Berth that may not be used is as good as none: the person may have the same one there."""
    user = check_password(request, **asked)
    if isinstance(user, User) and settings.LDAP is not None and not _may_use_password(user):
        user = load_backend(DIRECTORY).authenticate(request, **asked)
        if isinstance(user, User):
            user.backend = DIRECTORY
    return user if isinstance(user, User) else None


def _may_use_password(user: User) -> bool:
    """Return False if a right password of Berth does not let this person in: they have another way."""
    return settings.PASSWORDS_FOR == "everybody" or user.is_staff or way_of(user) == "ldap"


@contextmanager
def counted_code(user: User) -> Iterator[None]:
    """Count an attempt at a code, before the check inside, like a password. A Refusal raised inside is a failure."""
    with _counted(guessing.at_code(user.pk, _neighbourhood()), user.username):
        yield


@contextmanager
def counted_name(username: str) -> Iterator[None]:
    """Count an attempt at a name's password, before the check inside, like a sign-in."""
    with _counted(guessing.at_password(username, _neighbourhood(), None), username):
        yield


def count_at_directory(request: HttpRequest | None, username: str) -> None:
    """Count an attempt at a name in the directory before it is asked, but for browsers in which it signed in before.
    Raise TooMany if strangers tried so often that the directory might lock the account."""
    if devices.known(request, username) is None:
        _count(guessing.at_directory(username), username)


def forget_at_directory(username: str) -> None:
    """Forget the attempts after a right password, as the directory does."""
    _forget(guessing.at_directory(username))


@contextmanager
def _counted(attempt: Attempt, username: str) -> Iterator[None]:
    _count(attempt, username)
    try:
        yield
    except Refusal as refusal:
        record_refused(username, refusal)
        raise
    _forget(attempt)


def record_signed_in(user: User, how: str) -> None:
    audit.record(Actor(user), "sign-in", target=user, data={"by": how})


def sign_out(user: User) -> None:
    audit.record(Actor(user), "sign-out", target=user)


def _neighbourhood() -> str | None:
    address = audit.client_address.get()
    return address and neighbourhood(address)


def _count(attempt: Attempt, username: str) -> None:
    now = timezone.now()
    with transaction.atomic():
        one_at_a_time("sign-in")
        forget(SignInFailure.objects.filter(at__lt=now - WINDOW))
        free_at = _free_at(attempt, now)
        if free_at is None or free_at <= now:
            SignInFailure.objects.create(username=attempt.name, address=attempt.address)
            return
    seconds = max(1, math.ceil((free_at - now).total_seconds()))
    hint = (
        _("Wait %(seconds)d s and try again.") % {"seconds": seconds}
        if seconds <= 60
        else _("Wait %(minutes)d minutes and try again.") % {"minutes": math.ceil(seconds / 60)}
    )
    refusal = TooMany("too_many_sign_ins", _("Too many sign-in attempts."), hint, retry_after_seconds=seconds)
    record_refused(username, refusal)
    raise refusal


def _free_at(attempt: Attempt, now: datetime) -> datetime | None:
    """Return when the attempt is allowed by all of its limits; None if none of them is reached."""
    failures = SignInFailure.objects.filter(at__gte=now - WINDOW)
    of_name = failures.filter(username=attempt.name)
    limits = (
        (attempt.by_name, of_name),
        (attempt.by_pair, of_name.filter(address=attempt.address)),
        (attempt.by_address, failures.filter(address=attempt.address)),
    )
    moments = [guessing.free_at(limit, _latest(rows, limit.most)) for limit, rows in limits if limit]
    return max((moment for moment in moments if moment is not None), default=None)


def _latest(rows: QuerySet[SignInFailure], most: int) -> list[datetime]:
    return list(rows.order_by("-at").values_list("at", flat=True)[:most])


def _forget(attempt: Attempt) -> None:
    forget(SignInFailure.objects.filter(username=attempt.name, address=attempt.address))


def record_refused(username: str, refusal: Refusal) -> None:
    """Record a refused sign-in. The typed name is kept only if it is a known user name."""
    known = User.objects.filter(username=username).first()
    if isinstance(refusal, TooMany) and _is_noted(known, refusal):
        return
    audit.record(
        Actor(known) if known else None,
        "sign-in",
        target=known,
        outcome=AuditEntry.Outcome.REFUSED,
        data={"code": refusal.code},
    )


def _is_noted(known: User | None, refusal: Refusal) -> bool:
    """Return True if the same refusal was recorded recently: repeated attempts must not fill the trail."""
    same = AuditEntry.objects.filter(
        at__gt=timezone.now() - WINDOW,
        action="sign-in",
        actor=known,
        address=audit.client_address.get(),
        data__code=refusal.code,
    )
    return same.exists()
