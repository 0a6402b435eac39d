"""Runs whose time to give their GPUs back has come. Who is asked, and who is spared, an admission pass decides.

The room above takes the run down and gives the units back when its end is proven (`admission.give_back`). Until then
it is told again at each tick: whoever was killed in between, it converges.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from quotas import admission
from quotas.models import Claim
from quotas.signals import claim_to_stop

ASKED_BACK = "asked_back"


def on_tick(**_: Any) -> None:
    """Late or twice, it does the same."""
    due = Claim.objects.filter(state=Claim.State.ADMITTED, reclaim_at__lte=timezone.now())
    for claim_id, cluster_id in due.values_list("pk", "pool__cluster_id"):
        stop(claim_id, cluster_id)


def stop(claim_id: UUID, cluster_id: UUID) -> None:
    with transaction.atomic():
        admission.lock(cluster_id)  # no pass is sparing it
        due = Claim.objects.filter(pk=claim_id, state=Claim.State.ADMITTED, reclaim_at__lte=timezone.now())
        for claim in due:
            claim_to_stop.send(sender=Claim, claim=claim, code=ASKED_BACK)
