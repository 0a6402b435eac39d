"""Submit a job with the settings of another, for anyone who may submit in its tenant.

The owner's private settings (environment, script, repository, command) are copied only into their own jobs.
"""

from __future__ import annotations

from accounts.access import Actor
from jobs import access
from jobs.models import Job
from jobs.submit import Distributed, JobSpec, submit
from storage import connections
from storage.mounts import mounting
from workloads import longest
from workloads.repositories import VARIABLE
from workloads.sizes.sizing import Size


def duplicate(actor: Actor, job: Job, name: str | None = None) -> Job:
    """Submit it again as a new job, with the same checks, limits and queue. It waits for no other job."""
    access.require_own(actor, job)
    secret_env = job.secret.clear_env()
    mounts = mounting.mounts_of([job.pk]).get(job.pk, [])
    spec = JobSpec(
        tenant=job.tenant.slug,
        name=name or job.name,
        image=job.image.slug,
        size=Size.of(job).asked(),
        command=job.command,
        script=job.secret.clear_script(),
        completions=1 if job.sweep is not None else job.completions,
        parallelism=job.parallelism,
        retries=job.retries,
        final_exit_codes=job.final_exit_codes,
        sweep=job.sweep,
        distributed=distributed_of(job),
        checkpoints=job.checkpoints,
        ttl_hours=job.ttl_hours,
        env=job.env,
        repository=secret_env.pop(VARIABLE, job.repository),
        secret_env=secret_env,
        priority=job.priority,
        max_runtime_minutes=longest.at_most(job.tenant, job.max_runtime_minutes),
        notify=job.notify,
        exposition=job.exposition,
        volumes=[wish for _name, wish in mounting.wished(mounts)],
        writes=job.writes_id,
        connections=connections.used_by(actor, job.pk),
    )
    return submit(actor, spec)


def distributed_of(job: Job) -> Distributed | None:
    return Distributed(job.nodes, job.processes_per_node, job.framework) if job.framework else None
