"""Rows of a job for pure tests: nothing here touches a database or a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from accounts.models import Tenant, User
from clusters.models import Cluster
from jobs.cluster.manifests import Wanted
from jobs.models import Attempt, Job, JobSecret, Part
from quotas.models import Pool
from workloads.models import Image
from workloads.pods.wanted import Shared

INSTANCE = UUID("00000000-0000-4000-8000-000000000001")
RUN = UUID("00000000-0000-4000-8000-0000000000aa")
VOLUME = UUID("00000000-0000-4000-8000-0000000000bb")
ID = UUID("00000000-0000-4000-8000-0000000000cc")


def job(**changes: Any) -> Job:
    cluster = Cluster(slug="main", name="Main")
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    values: dict[str, Any] = {
        "id": ID,
        "command": ["python", "train.py"],
        "name": "train",
        "tenant": Tenant(slug="demo", name="Demo"),
        "owner": User(username="alice"),
        "image": Image(slug="jupyter", name="Jupyter", reference="example/jupyter:1"),
        "pool": Pool(slug="a100", name="A100", cluster=cluster, node_labels=labels),
        "units": 1,
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
