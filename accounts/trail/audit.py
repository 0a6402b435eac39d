"""Audit trail: who changed what, and what was refused. Rows are written once; months that are too old are
dropped as a whole (`keeping.py`).
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Model
from django.http import HttpRequest
from django.utils import timezone

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.models import AuditEntry, Tenant

log = logging.getLogger(__name__)

RECORDED = {403, 404, 409, 422, 429}  # not 400, which is a typing mistake
READS = {"GET", "HEAD", "OPTIONS"}  # for these only 403 is recorded: they try to change nothing

# Refusals of one person for one action: of more within this time, none is recorded, or a loop would fill the table.
MOST_ALIKE = 20
ALIKE_WITHIN = timedelta(minutes=15)

# Client address of the current request; None outside of a request (a command, a task).
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
    """Write one entry in the caller's transaction: a change and its entry are committed together or not at all."""
    details = dict(data or {})
    if name := getattr(target, "name", ""):
        details.setdefault("name", str(name))  # the entry outlives its target
    if actor is not None and actor.token is not None:
        details["token"] = actor.token.prefix
    if actor is not None and actor.user.service_of_id is not None:
        details["responsible"] = actor.user.responsible.username if actor.user.responsible else ""
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


def record_refusal(request: HttpRequest, actor: Actor, refusal: Refusal) -> None:
    """Record a refusal, after the use case's rollback. A database outage is only logged: the answer must go out."""
    if refusal.status not in RECORDED or (request.method in READS and refusal.status != 403):
        return
    route = request.resolver_match.url_name if request.resolver_match else None
    action = f"{route or 'unknown'}.{str(request.method).lower()}"[:64]
    refused = AuditEntry.Outcome.REFUSED
    alike = AuditEntry.objects.filter(actor=actor.user, action=action, outcome=refused)
    data = {"code": refusal.code, "status": refusal.status, "path": request.path[:240]}
    try:
        if alike.filter(at__gt=timezone.now() - ALIKE_WITHIN)[:MOST_ALIKE].count() < MOST_ALIKE:
            record(actor, action, outcome=refused, data=data)
    except DatabaseError:
        if transaction.get_connection().needs_rollback:
            raise  # inside the transaction of a request with a key, which must roll back
        log.warning("could not record that %s was refused (%s)", route, refusal.code)
