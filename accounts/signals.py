"""Signals to the rooms above about changes of people, sent inside the transaction. Receivers only enqueue work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import transaction
from django.dispatch import Signal

from accounts.models import User
from accounts.service_accounts.answering import note_lapses

# People's SSH keys changed: their running workspaces must get the new ones. Arguments: users (set[User]).
ssh_keys_changed = Signal()

# People were deactivated, removed from a tenant, or got another role: open connections must be checked again.
# Service accounts that stopped working with this are among them. Arguments: users (set[User]).
access_changed = Signal()

# An API token was revoked: what it was exchanged for ends too. Arguments: token (APIToken).
token_revoked = Signal()

_gathered: ContextVar[set[User] | None] = ContextVar("gathered", default=None)


def send_access_changed(user: User) -> None:
    gathered = _gathered.get()
    if gathered is None:
        with transaction.atomic():
            _send({user})
    else:
        gathered.add(user)


def _send(users: set[User]) -> None:
    access_changed.send(sender=User, users=users | note_lapses(users))


@contextmanager
def access_changes_together() -> Iterator[None]:
    """Run a transaction in which the access of several people may change, and send one signal at its end.

    Receivers lock workspaces; after those neither people nor tenants nor more workspaces may be locked.
    """
    with transaction.atomic():
        changed = set[User]()
        token = _gathered.set(changed)
        try:
            yield
        finally:
            _gathered.reset(token)
        if changed:
            _send(changed)
