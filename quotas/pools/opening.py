"""Taking a pool out of use, and back: nothing new starts in it, what runs goes on, what waits goes on waiting."""

from __future__ import annotations

from django.db import transaction

from accounts import audit
from accounts.access import Actor
from accounts.models import Scope
from quotas import admission, passes
from quotas.models import Pool


def set_open(actor: Actor, pool: Pool, *, is_open: bool) -> bool:
    """False: it was so already."""
    actor.require(Scope.ADMIN)
    with transaction.atomic():
        admission.lock(pool.cluster_id)  # no pass is deciding by what it was
        if not Pool.objects.filter(pk=pool.pk, is_open=not is_open).update(is_open=is_open):
            return False
        audit.record(actor, "pool.open" if is_open else "pool.close", target=pool, data={"name": pool.name})
        passes.want(pool.pk)  # for those who wait: to start, or to be told why they do not
    return True
