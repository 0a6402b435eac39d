"""Manifests of a job for who wants to see them: made from rows, without secrets."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from jobs.models import Attempt, Job
from quotas.models import Claim
from workloads.pods.wanted import Shared
from workloads.sizes.sizing import Size

from . import manifests


def manifests_of(job: Job) -> dict[str, Any]:
    """Return a List with all objects of the newest attempt, or of the first to come, but for its Secret."""
    attempt = Attempt.objects.filter(part__job=job).select_related("part").order_by("-pk").first()
    part = attempt.part if attempt else job.parts.order_by("index")[0]
    claim = Claim.objects.filter(pk=part.run).first() if part.run else None
    size = Size.of(job)
    wanted = manifests.wanted_of(
        job,
        part,
        attempt or Attempt(part=part, number=1, run=part.run or job.pk),
        claim
        or Claim(
            cpu_millicores=size.requested_cpu_millicores,
            memory_mib=size.requested_memory_mib,
            extra=size.pool.beside_gpus(size.units),
        ),
        Shared([job.pk]),
        timezone.now(),
    )
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            manifests.start_files(wanted),
            *(manifests.network(wanted) if wanted.is_gang else ()),
            manifests.job(wanted),
        ],
    }
