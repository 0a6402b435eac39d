"""Stops preempted runs when their grace is over. Admission passes decide on preemptions and cancel them.

The room above takes the run down and gives the units back when its end is proven (`admission.give_back`). Until then
it gets the signal again at each tick, so that a killed process loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from quotas import admission
from quotas.models import Claim
from quotas.signals import claim_to_stop

ASKED_BACK = "asked_back"


class Asked(NamedTuple):
    """Time at which a run must give its GPUs back, and why."""

    at: datetime
    code: str


def asked(claim_ids: Iterable[UUID | None]) -> dict[UUID | None, Asked]:
    """Return the ends of those claims that are preempted, or whose budget is spent. One query; none for no claim."""
    if not (ids := [pk for pk in claim_ids if pk]):
        return {}
    is_asked = Q(reclaim_at__isnull=False) | Q(budget_ends_at__isnull=False)
    rows = Claim.objects.filter(is_asked, pk__in=ids, state=Claim.State.ADMITTED)
    return {row.pk: _first(row) for row in rows}


def _first(claim: Claim) -> Asked:
    ends = ((claim.reclaim_at, claim.reclaim_code), (claim.budget_ends_at, "ends_by_budget"))
    return min(Asked(at, code) for at, code in ends if at is not None)


def on_tick(**_: Any) -> None:
    """Stop the runs whose grace is over. Late or repeated calls do no harm."""
    due = Claim.objects.filter(state=Claim.State.ADMITTED, reclaim_at__lte=timezone.now())
    for claim_id, cluster_id in due.values_list("pk", "pool__cluster_id"):
        stop(claim_id, cluster_id)


def stop(claim_id: UUID, cluster_id: UUID) -> None:
    with transaction.atomic():
        admission.lock(cluster_id)  # no pass can cancel the preemption meanwhile
        due = Claim.objects.filter(pk=claim_id, state=Claim.State.ADMITTED, reclaim_at__lte=timezone.now())
        for claim in due:
            claim_to_stop.send(sender=Claim, claim=claim, code=ASKED_BACK)
