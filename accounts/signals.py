"""What changes about people, told to the rooms above inside the transaction. Receivers mark and enqueue, no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import transaction
from django.dispatch import Signal

from accounts.models import User

# Their SSH keys became other ones: their running workspaces must learn it. Arguments: users (set[User]).
ssh_keys_changed = Signal()

# They were deactivated, taken out of a tenant, or have another role: what is open must be checked anew.
# Arguments: users (set[User]).
access_changed = Signal()

_gathered: ContextVar[set[User] | None] = ContextVar("gathered", default=None)


def tell_access_changed(user: User) -> None:
    gathered = _gathered.get()
    if gathered is None:
        access_changed.send(sender=User, users={user})
    else:
        gathered.add(user)


@contextmanager
def told_together() -> Iterator[None]:
    """A transaction in which the access of several may change: it is told at the end, of all of them at once.

    Who hears it locks workspaces, and after those neither people nor tenants nor more workspaces may be locked.
    """
    with transaction.atomic():
        changed = set[User]()
        token = _gathered.set(changed)
        try:
            yield
        finally:
            _gathered.reset(token)
        if changed:
            access_changed.send(sender=User, users=changed)
