"""Jobs as rows: views and API need no cluster."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.utils import timezone

from accounts.access import Actor
from jobs.models import Attempt, Job, Phase
from jobs.submit import JobSpec, submit
from quotas import admission
from tests.cast import Cast
from workloads.sizes.sizing import SizeAsked


def make_job(cast: Cast, actor: Actor, name: str = "train", **changes: Any) -> Job:
    """Submit a job of the actor in demo (carol's in second); it waits in the queue."""
    tenant = cast.second if actor == cast.carol else cast.demo
    asked = {"command": ["true"], "env": {"GREETING": "hello"}, "secret_env": {"TOKEN": "s3cret-value"}}
    spec = JobSpec(
        tenant=tenant.slug,
        name=name,
        image=cast.image.slug,
        size=SizeAsked(flavor=cast.flavor.slug),
        **(asked | changes),
    )
    return submit(actor, spec)


def end_in_rows(job: Job, phase: str = Phase.FAILED, *, attempts: int = 0) -> Job:
    """Let all parts of a job be over, the first of them after some attempts that failed."""
    now = timezone.now()
    for part in job.parts.all():
        if part.run:
            admission.release(part.run, "failed")
    first = job.parts.earliest("index")
    for number in range(1, attempts + 1):
        Attempt.objects.create(
            part=first, number=number, run=uuid4(), node="gpu-1", exit_code=3, reason="exit_code",
            data={"exit_code": 3}, counted=True, started_at=now, ended_at=now,
        )  # fmt: skip
    job.parts.update(phase=phase, number=attempts)
    failure = {"code": "exit_code", "data": {"index": 0, "exit_code": 3}, "at": now.isoformat()}
    job.phase, job.ended_at, job.failure = phase, now, failure if phase == Phase.FAILED else None
    job.save(update_fields=["phase", "ended_at", "failure"])
    return job
