"""Closing and opening a pool: in a closed pool nothing new starts, runs go on, and the queue keeps waiting."""

from __future__ import annotations

from django.db import transaction

from accounts.access import Actor
from accounts.models import Scope
from accounts.trail import audit
from quotas import admission, passes
from quotas.models import Pool


def set_open(actor: Actor, pool: Pool, *, is_open: bool) -> bool:
    """Open or close the pool. Return False if it was so already."""
    actor.require(Scope.ADMIN)
    with transaction.atomic():
        admission.lock(pool.cluster_id)  # no pass decides by the old state
        if not Pool.objects.filter(pk=pool.pk, is_open=not is_open).update(is_open=is_open):
            return False
        audit.record(actor, "pool.open" if is_open else "pool.close", target=pool, data={"name": pool.name})
        passes.want(pool.pk)  # starts waiting claims, or updates why they wait
    return True
