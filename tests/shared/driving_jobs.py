"""Jobs against a real HTTP Kubernetes API, step by step: nothing works in the background."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from jobs.access import RELATED
from jobs.cluster.look import look
from jobs.models import Attempt, Job
from jobs.submit import JobSpec, submit
from quotas import admission
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.looking import listed
from workloads.models import Image
from workloads.pods.wanted import Shared
from workloads.sizes.sizing import SizeAsked

ENOUGH_SECONDS = 60
PASSES, FAILS, RUNS = "passes", "fails", "jupyter"


def image(slug: str) -> str:
    reference = f"devcluster.local/simulated-vectoradd:{slug}"
    Image.objects.get_or_create(slug=slug, defaults={"name": slug, "reference": reference})
    return slug


def submitted(house: Cast, name: str = "train", ends: str = PASSES, **changes: Any) -> Job:
    """Submit a job of alice's; its image decides how its pods end, and that of workspaces never does."""
    spec = JobSpec(
        tenant=house.demo.slug,
        name=name,
        image=image(ends),
        size=SizeAsked(flavor="a100-1"),
        **({"command": ["train"]} | changes),
    )
    return submit(house.alice, spec)


def drive(job: Job, done: Callable[[Job], bool], seconds: float = ENOUGH_SECONDS) -> Job:
    """Let the queue and the keeper look again and again until the job is as expected."""
    deadline = time.monotonic() + seconds
    while True:
        Claim.objects.filter(state=Claim.State.WAITING).update(not_before=None)
        admission.admit(job.pool_id)
        row = Job.objects.select_related(*RELATED, "secret").get(pk=job.pk)
        look(row, listed(row.pool.cluster, row.tenant.namespace), Shared([row.pk]))
        row.refresh_from_db()
        if done(row):
            return row
        if time.monotonic() > deadline:
            pytest.fail(f"still {row.phase}: {row.message_code} {row.message_data} {told(row)}")
        time.sleep(0.02)


def in_phase(*phases: str) -> Callable[[Job], bool]:
    return lambda job: job.phase in phases


def told(job: Job) -> list[str]:
    return list(job.events.values_list("code", flat=True))


def attempts(job: Job) -> list[Attempt]:
    return list(Attempt.objects.filter(part__job=job).order_by("pk"))


def held(job: Job) -> int:
    """Return the number of claims of the job that are not released."""
    return Claim.objects.filter(holder_id=job.pk).exclude(state=Claim.State.RELEASED).count()
