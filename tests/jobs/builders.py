"""Rows of a job for pure tests: nothing here touches a database or a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from jobs.cluster.manifests import Wanted
from jobs.models import Attempt, Job, JobSecret, Part
from tests.workspaces.builders import INSTANCE, RUN, workspace
from workloads.pods.wanted import Shared

ID = UUID("00000000-0000-4000-8000-0000000000cc")


def job(**changes: Any) -> Job:
    like = workspace()
    values: dict[str, Any] = {
        "id": ID,
        "command": ["python", "train.py"],
        **{
            name: getattr(like, name) for name in ("name", "tenant", "owner", "image", "pool", "units", "env")
        },
        "cpu_millicores": 4000,
        "memory_mib": 16384,
    }
    return Job(**(values | changes))


def wanted(row: Job | None = None, **changes: Any) -> Wanted:
    row = row or job()
    row.secret = JobSecret(job=row, env="")
    part = Part(job=row, index=0)
    shared = Shared()
    shared.__dict__.update(mounts={}, connections={})
    values: dict[str, Any] = {
        "workload": row,
        "part": part,
        "attempt": Attempt(part=part, number=1, run=RUN),
        "instance": INSTANCE,
        "run": RUN,
        "node": "gpu-1",
        "nodes": ["gpu-1"],
        "requested_cpu_millicores": 2000,
        "requested_memory_mib": 16384,
        "shared": shared,
        "now": datetime(2026, 1, 1, tzinfo=UTC),
        "must_end_at": None,
    }
    made = Wanted(**(values | changes))
    made.__dict__.update(bad_gpus=(), unwell_nodes={})
    return made
