"""Sign-in by name and password, then by a code, with limits that slow down guessing.

Failures are counted in rows, so all web processes see the same. An attempt is counted before the password is checked,
so that many at once cannot pass the limit together.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate as check_password
from django.contrib.auth import get_user
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.addresses import neighbourhood
from accounts.credentials import sessions
from accounts.errors import NotAllowed, NotSignedIn, Refusal, TooMany
from accounts.locks import forget, one_at_a_time
from accounts.models import AuditEntry, SignInFailure, User
from accounts.trail import audit

WINDOW = timedelta(minutes=15)
MOST_PER_PAIR = 5  # one person mistyping
MOST_PER_ADDRESS = 20  # one machine trying many names
MOST_PER_USERNAME = 50  # many machines trying one name
MOST_CODES = 10  # many machines that know a person's password; that person must wait too


@dataclass(frozen=True)
class Attempt:
    """A sign-in attempt. It holds the name's digest, as people type passwords there; an IPv6 network is one address."""

    username: str
    address: str | None
    most_per_username: int = MOST_PER_USERNAME

    @classmethod
    def of(cls, username: str) -> Attempt:
        address = audit.client_address.get()
        digest = hashlib.sha256(username.casefold().encode()).hexdigest()
        return cls(digest, address and neighbourhood(address))

    @classmethod
    def at_code_of(cls, user: User) -> Attempt:
        """Return an attempt at the person's code, counted apart: nobody can type its key as a name."""
        return replace(cls.of(f"\0code\0{user.pk}"), most_per_username=MOST_CODES)

    def forget(self) -> None:
        forget(SignInFailure.objects.filter(username=self.username, address=self.address))


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


def authenticate(request: HttpRequest | None, username: str, password: str) -> User:
    """Return the person of this name and password. A refusal does not reveal whether the name exists."""
    attempt = Attempt.of(username)
    _count(attempt, username)
    user = check_password(request, username=username, password=password)
    if not isinstance(user, User):
        refusal: Refusal = NotSignedIn(
            "sign_in_refused",
            _("Incorrect user name or password."),
            _("Check both; upper and lower case matter. An admin can set a new password."),
        )
        record_refused(username, refusal)
        raise refusal
    attempt.forget()
    if settings.PASSWORDS_FOR == "admins" and not user.is_staff:
        refusal = NotAllowed(
            "passwords_for_admins",
            _("Only admins can sign in with a password here."),
            _("Use the button above."),
        )
        record_refused(username, refusal)
        raise refusal
    return user


def confirm(user: User, password: str) -> None:
    """Check the person's password before changes that a stolen session must not make. Counted as at sign-in."""
    try:
        authenticate(None, user.username, password)
    except NotSignedIn:
        text = _("Incorrect password.")
        hint = _("Check it; upper and lower case matter.")
        raise NotSignedIn("wrong_password", text, hint, fields={"password": [f"{text} {hint}"]}) from None


@contextmanager
def counted_code(user: User) -> Iterator[None]:
    """Count an attempt at a code, before the check inside, like a password. A Refusal raised inside is a failure."""
    attempt = Attempt.at_code_of(user)
    _count(attempt, user.username)
    try:
        yield
    except Refusal as refusal:
        record_refused(user.username, refusal)
        raise
    attempt.forget()


def record_signed_in(user: User, how: str) -> None:
    audit.record(Actor(user), "sign-in", target=user, data={"by": how})


def sign_out(user: User) -> None:
    audit.record(Actor(user), "sign-out", target=user)


def _count(attempt: Attempt, username: str) -> None:
    now = timezone.now()
    with transaction.atomic():
        one_at_a_time("sign-in")
        forget(SignInFailure.objects.filter(at__lt=now - WINDOW))
        free_at = _blocked_until(attempt)
        if free_at is None:
            SignInFailure.objects.create(username=attempt.username, address=attempt.address)
            return
    seconds = max(1, math.ceil((free_at - now).total_seconds()))
    refusal = TooMany(
        "too_many_sign_ins",
        _("Too many sign-in attempts."),
        _("Wait %(minutes)d minutes and try again.") % {"minutes": math.ceil(seconds / 60)},
        retry_after_seconds=seconds,
    )
    record_refused(username, refusal)
    raise refusal


def _blocked_until(attempt: Attempt) -> datetime | None:
    """Return when the next attempt is allowed, if a limit is reached."""
    failures = SignInFailure.objects.all()
    of_username = failures.filter(username=attempt.username)
    limits = [
        (of_username, attempt.most_per_username),
        (of_username.filter(address=attempt.address), MOST_PER_PAIR),
    ]
    if attempt.address is not None:
        limits.append((failures.filter(address=attempt.address), MOST_PER_ADDRESS))
    times = [_oldest_that_counts(rows, most) for rows, most in limits]
    return max((at + WINDOW for at in times if at is not None), default=None)


def _oldest_that_counts(rows: QuerySet[SignInFailure], most: int) -> datetime | None:
    """Time of the `most`-th latest row: once it leaves the window, the limit is no longer reached."""
    return rows.order_by("-at").values_list("at", flat=True)[most - 1 : most].first()


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
