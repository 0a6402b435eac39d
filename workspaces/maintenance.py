"""Stop a run that has to leave its node, with the reason. Files are kept; the owner may start it elsewhere."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from quotas import admission
from quotas.models import Claim

from . import runs, tasks
from .live import changing
from .models import Desired, Event
from .story import tell


def stop_run(run: UUID) -> bool:
    """Stop the run. Return False if it is over or ending already."""
    claim = Claim.objects.filter(pk=run, holder_kind=Claim.Holder.WORKSPACE).select_related("pool").first()
    if claim is None:
        return False
    with transaction.atomic():
        admission.lock(claim.pool.cluster_id)
        with changing(claim.holder_id) as row:
            if row.run != run or row.ending or row.desired != Desired.RUNNING:
                return False
            tell(row, "stopped_by_drain", level=Event.Level.WARNING)
            runs.stop(row)
    tasks.mark([claim.holder_id])
    return True
