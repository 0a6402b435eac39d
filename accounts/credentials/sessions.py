"""Sessions of a person, in all browsers at once."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts import signals
from accounts.access import Actor
from accounts.models import User
from accounts.trail import audit

FORGOTTEN_AT_ONCE = 1000


def sign_out_everywhere(actor: Actor) -> None:
    """End all sessions of the person, this one too. Tokens and SSH keys still work."""
    actor.require_whole_person()
    with transaction.atomic():
        end_all(actor.user)
        audit.record(actor, "user.sign-out-everywhere", target=actor.user)
        signals.send_access_changed(actor.user)


def end_all(user: User) -> None:
    """Make all existing sessions of the person invalid (see User.get_session_auth_hash)."""
    User.objects.filter(pk=user.pk).update(sign_outs=F("sign_outs") + 1)


def forget_expired(**_: Any) -> None:
    """Delete expired sessions, also those of unfinished sign-ins, which anybody can create."""
    expired = Session.objects.filter(expire_date__lt=timezone.now()).values("pk")[:FORGOTTEN_AT_ONCE]
    Session.objects.filter(pk__in=expired).delete()
