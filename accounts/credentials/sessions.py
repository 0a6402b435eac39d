"""Sessions: how they are stored (settings.SESSION_ENGINE), and all sessions of a person at once."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from accounts import signals
from accounts.access import Actor
from accounts.models import User
from accounts.trail import audit

FORGOTTEN_AT_ONCE = 1000
DIGEST_LENGTH = 40  # of Django's column: 160 bits, about as many as a key has


def stored_as(session_key: str) -> str:
    """Return the primary key of a session's row: a digest, so that who reads the database cannot use it as a cookie."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:DIGEST_LENGTH]


def session_row(session: SessionBase) -> str:
    """Return the primary key of this session's row; empty if it has none."""
    return stored_as(session.session_key) if session.session_key else ""


class SessionStore(db.SessionStore):
    """Django's sessions in the database, whose rows do not hold the key that the browser has.

    The data is signed with the name of this class, so that sessions of Django's own store are read too.
    """

    def _get_session_from_db(self) -> Session | None:
        row = _living(stored_as(self.session_key or ""))
        if row is None:
            self._session_key = None
        return row

    async def _aget_session_from_db(self) -> Session | None:
        row = await _rows_living(stored_as(self.session_key or "")).afirst()
        if row is None:
            self._session_key = None
        return row

    def exists(self, session_key: str) -> bool:
        return super().exists(stored_as(session_key))

    async def aexists(self, session_key: str) -> bool:
        return await super().aexists(stored_as(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row: Session = super().create_model_instance(data)  # type: ignore[assignment]
        row.session_key = stored_as(row.session_key)
        return row

    async def acreate_model_instance(self, data: dict[str, Any]) -> Session:
        row: Session = await super().acreate_model_instance(data)  # type: ignore[assignment]
        row.session_key = stored_as(row.session_key)
        return row

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            super().delete(stored_as(key))

    async def adelete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            await super().adelete(stored_as(key))


def kept_in(row_key: str) -> dict[str, Any]:
    """Return the data of the session in this row; empty if there is none or it has expired."""
    row = _living(row_key)
    data: dict[str, Any] = SessionStore().decode(row.session_data) if row else {}
    return data


def _living(row_key: str) -> Session | None:
    return _rows_living(row_key).first()


def _rows_living(row_key: str) -> QuerySet[Session]:
    return Session.objects.filter(pk=row_key, expire_date__gt=timezone.now())


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
