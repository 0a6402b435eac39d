"""Jobs as rows: views and API need no cluster."""

from __future__ import annotations

from typing import Any

from accounts.access import Actor
from jobs.models import Job
from jobs.submit import JobSpec, submit
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
