"""Jobs as holders of claims: how quotas ask them, and what they do when a claim of one of their parts changes."""

from __future__ import annotations

from math import ceil
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from jobs import enqueue, story
from jobs.changing import add_event, announce, changing
from jobs.models import UP, Attempt, Desired, Ending, Job, Part, PartPhase
from quotas import admission
from quotas.models import Claim
from quotas.reclaim import ASKED_BACK
from storage.mounts import mounting
from workloads.models import EventRow

from . import attempts, lifecycle, parts

Level = EventRow.Level


class Jobs:
    """The `quotas.holders.Holder` of claims whose holder is a job."""

    def names(self, holders: set[UUID]) -> dict[UUID, str]:
        return dict(Job.objects.filter(pk__in=holders).values_list("pk", "name"))

    def page(self, holder: UUID) -> str:
        return reverse("job", args=[holder])

    def affinities(self, holders: set[UUID]) -> dict[UUID, list[dict[str, Any]]]:
        return mounting.affinities(holders)

    def volumes_changed(self, holders: set[UUID]) -> None:
        up = Part.objects.filter(job__in=holders, phase=PartPhase.STARTING).values_list("job", flat=True)
        is_waiting = Q(pk__in=holders) | Q(after__predecessor__in=holders)  # for a version, perhaps
        held = Job.objects.filter(is_waiting, is_held=True, ended_at=None).values_list("pk", flat=True)
        enqueue.look({*up, *held})

    def admitted(self, claim: Claim) -> None:
        with changing(claim.holder_id) as job:
            if job.desired == Desired.DONE:
                parts.begin(job, claim)
        enqueue.look([claim.holder_id])

    def waits(self, claim: Claim) -> None:
        for job in Job.objects.filter(pk=claim.holder_id):
            announce(job)

    def standing_changed(self, claims: list[Claim]) -> None:
        for job in Job.objects.filter(pk__in={claim.holder_id for claim in claims}).order_by("pk"):
            announce(job)

    def to_stop(self, claim: Claim, code: str) -> None:
        """End the attempt. After a preemption its part waits in front of the queue; otherwise the job is cancelled."""
        with changing(claim.holder_id) as job:
            part = job.parts.filter(run=claim.pk, phase__in=UP).first()
            if part is None:
                return
            if code == ASKED_BACK:
                add_event(
                    job,
                    "given_back",
                    run=claim.pk,
                    level=Level.WARNING,
                    index=part.index,
                    attempt=part.number,
                )
                parts.end(job, part, Ending.RECLAIM)
            else:
                add_event(job, f"stopped_by_{code}", run=claim.pk, level=Level.WARNING)
                lifecycle.end_all(job, Desired.CANCELLED)
        enqueue.look([claim.holder_id])

    def preempted(self, claim: Claim) -> None:
        if claim.reclaim_at is not None:
            minutes = ceil((claim.reclaim_at - timezone.now()).total_seconds() / 60)
            self._add_event(claim, f"asked_back_{claim.reclaim_code}", Level.WARNING, minutes=minutes)

    def preemption_cancelled(self, claim: Claim) -> None:
        self._add_event(claim, "spared", Level.INFO)

    def ends_by_budget(self, claim: Claim) -> None:
        if (at := claim.budget_ends_at) is None:
            self._add_event(claim, "goes_on_by_budget", Level.INFO)
        else:
            minutes = max(0, ceil((at - timezone.now()).total_seconds() / 60))
            self._add_event(claim, "ends_by_budget", Level.WARNING, minutes=minutes)

    def released(self, claim: Claim) -> None:
        """Accept an end that nobody had seen but an admin confirmed: the part goes on."""
        if claim.admitted_at is None:
            return  # it only waited
        attempt = Attempt.objects.filter(run=claim.pk, ended_at=None).first()
        if attempt is not None:
            with changing(claim.holder_id) as job:
                attempts.end_confirmed(job, attempt)
            enqueue.look([claim.holder_id])

    def drain(self, claim: Claim) -> bool:
        """End the attempt; its part goes on elsewhere, and none of its retries is counted."""
        with transaction.atomic():
            admission.lock(claim.pool.cluster_id)
            with changing(claim.holder_id) as job:
                part = job.parts.filter(run=claim.pk, phase__in=UP).first()
                if part is None:
                    return False
                add_event(
                    job,
                    "ended_by_drain",
                    run=claim.pk,
                    level=Level.WARNING,
                    index=part.index,
                    node=story.spelled(claim.nodes),
                )
                parts.end(job, part, Ending.AGAIN)
        enqueue.look([claim.holder_id])
        return True

    def _add_event(self, claim: Claim, code: str, level: EventRow.Level, **data: Any) -> None:
        with changing(claim.holder_id) as job:
            add_event(job, code, run=claim.pk, level=level, index=claim.part, **data)
