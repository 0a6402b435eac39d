"""Workspaces as holders of claims: how quotas ask them, and what they do when their claim changes."""

from __future__ import annotations

from datetime import datetime
from math import ceil
from typing import Any
from uuid import UUID

from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from quotas import admission
from quotas.models import Claim
from quotas.reclaim import ASKED_BACK
from storage.mounts import mounting
from workspaces import enqueue
from workspaces.models import Desired, Ending, Event, Phase, Step, Workspace
from workspaces.state import runs
from workspaces.state.live import announce, changing
from workspaces.state.story import add_event
from workspaces.state.transitions import Move, move

from . import lifetime


class Workspaces:
    """The `quotas.holders.Holder` of claims whose holder is a workspace."""

    def names(self, holders: set[UUID]) -> dict[UUID, str]:
        return dict(Workspace.objects.filter(pk__in=holders).values_list("pk", "name"))

    def page(self, holder: UUID) -> str:
        return reverse("workspace", args=[holder])

    def affinities(self, holders: set[UUID]) -> dict[UUID, list[dict[str, Any]]]:
        return mounting.affinities(holders)

    def volumes_changed(self, holders: set[UUID]) -> None:
        up = Workspace.objects.filter(pk__in=holders, phase__in=(Phase.STARTING, Phase.READY), ending="")
        enqueue.reconcile(up.values_list("pk", flat=True), urgent=True)

    def admitted(self, claim: Claim) -> None:
        """Complete the second step. A run that was admitted only because it ends by a time gets that end at once."""
        with changing(claim.holder_id) as workspace:
            if workspace.run != claim.pk:
                runs.begin(workspace, claim, "restart_requested")
            if workspace.ending or workspace.phase != Phase.WAITING:
                return
            move(workspace, Move.ADMIT)
            workspace.started_at = claim.admitted_at
            add_event(workspace, "admitted", step=Step.ADMISSION, pool=claim.pool.name, node=claim.node)
            runs.advance(workspace)
            if claim.must_end_at is not None and workspace.stops_at is None:
                lifetime.keep_to(workspace, claim.must_end_at)
        enqueue.reconcile([claim.holder_id], urgent=True)

    def waits(self, claim: Claim) -> None:
        """Announce a new reason: pages make the words from the claim."""
        for workspace in Workspace.objects.filter(pk=claim.holder_id, run=claim.pk):
            announce(workspace)

    def standing_changed(self, claims: list[Claim]) -> None:
        for workspace in Workspace.objects.filter(run__in=[claim.pk for claim in claims]).order_by("pk"):
            announce(workspace)

    def to_stop(self, claim: Claim, code: str) -> None:
        """End the run. Files stay; after a preemption, it waits in front of the queue."""
        with changing(claim.holder_id) as workspace:
            if workspace.run != claim.pk or workspace.ending:
                return
            if code == ASKED_BACK:
                add_event(workspace, "given_back", level=Event.Level.WARNING)
                runs.end(workspace, Ending.RECLAIM)
            else:
                add_event(workspace, f"stopped_by_{code}", level=Event.Level.WARNING)
                runs.stop(workspace)
        enqueue.reconcile([claim.holder_id])

    def preempted(self, claim: Claim) -> None:
        if claim.reclaim_at is not None:
            code, at = f"asked_back_{claim.reclaim_code}", claim.reclaim_at
            _add_run_event(claim, code, Event.Level.WARNING, minutes=_minutes_until(at), at=at.isoformat())

    def preemption_cancelled(self, claim: Claim) -> None:
        _add_run_event(claim, "spared", Event.Level.INFO)

    def ends_by_budget(self, claim: Claim) -> None:
        if (at := claim.budget_ends_at) is None:
            _add_run_event(claim, "goes_on_by_budget", Event.Level.INFO)
        else:
            minutes = max(0, _minutes_until(at))
            _add_run_event(claim, "ends_by_budget", Event.Level.WARNING, minutes=minutes, at=at.isoformat())

    def released(self, claim: Claim) -> None:
        """Accept an end that nobody had seen but an admin confirmed: the run can be cleared away."""
        unproven = Workspace.objects.filter(run=claim.pk, pod_ended=False)
        if unproven.update(pod_ended=True):
            enqueue.reconcile([claim.holder_id])

    def drain(self, claim: Claim) -> bool:
        """Stop the run; files are kept, and the owner may start it elsewhere."""
        with transaction.atomic():
            admission.lock(claim.pool.cluster_id)
            with changing(claim.holder_id) as row:
                if row.run != claim.pk or row.ending or row.desired != Desired.RUNNING:
                    return False
                add_event(row, "stopped_by_drain", level=Event.Level.WARNING)
                runs.stop(row)
        enqueue.reconcile([claim.holder_id])
        return True


def _add_run_event(claim: Claim, code: str, level: Event.Level, **data: Any) -> None:
    """Add an event to the claim's run, or to the next run if that takes over the units."""
    with changing(claim.holder_id) as workspace:
        if workspace.run == claim.pk and (not workspace.ending or runs.keeps_units(workspace)):
            add_event(workspace, code, level=level, **data)


def _minutes_until(at: datetime) -> int:
    return ceil((at - timezone.now()).total_seconds() / 60)
