"""The trail of who changed what, and of what was refused. Rows are written once and stay."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Any

from django.db import DatabaseError
from django.db.models import Model

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.models import AuditEntry, Tenant

log = logging.getLogger(__name__)

# Where the current request comes from; None outside of one (a command, a task).
client_address: ContextVar[str | None] = ContextVar("client_address", default=None)


def record(
    actor: Actor | None,
    action: str,
    *,
    target: Model | None = None,
    tenant: Tenant | None = None,
    outcome: str = AuditEntry.Outcome.DONE,
    data: dict[str, Any] | None = None,
) -> AuditEntry:
    """Write one line, in the caller's transaction: a change and its line stand or fall together."""
    details = dict(data or {})
    if actor is not None and actor.token is not None:
        details["token"] = actor.token.prefix
    return AuditEntry.objects.create(
        actor=actor.user if actor else None,
        actor_name=actor.user.username if actor else "",
        action=action,
        outcome=outcome,
        tenant=tenant,
        target_kind=target._meta.model_name or "" if target else "",
        target_id=str(target.pk) if target else "",
        address=client_address.get(),
        data=details,
    )


def record_refusal(actor: Actor, action: str, refusal: Refusal, *, path: str) -> None:
    """Called by the edges, after the use case's transaction has been undone. An outage must not hide the answer."""
    try:
        record(
            actor,
            action,
            outcome=AuditEntry.Outcome.REFUSED,
            data={"code": refusal.code, "status": refusal.status, "path": path[:240]},
        )
    except DatabaseError:
        log.warning("could not record the refusal %s of %s", refusal.code, action)
