"""Objects of jobs that a row wants, and which are no finding. What else has a job's label is left over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accounts.models import Tenant
from clusters.labels import JOB, RUN
from clusters.models import Cluster
from jobs.cluster.manifests import START
from jobs.models import Attempt, Job


@dataclass(frozen=True)
class OfJobs:
    """Rows of a cluster's jobs: namespaces by job, and the runs of attempts that have not ended."""

    namespaces: Mapping[str, str]
    runs: frozenset[str]

    def want(self, body: Mapping[str, Any]) -> bool:
        """Return True for an object that a job's row wants. Pods that have ended stay until Kubernetes takes them."""
        kind, metadata = body["kind"], body["metadata"]
        name, labels = str(metadata["name"]), metadata.get("labels") or {}
        if kind == "ConfigMap":
            return name.startswith(START) and metadata["namespace"] in self.namespaces.values()
        job, run = labels.get(JOB, ""), labels.get(RUN, "")
        if not job or self.namespaces.get(job) != metadata.get("namespace"):
            return False
        if kind in ("Service", "NetworkPolicy"):
            return run in self.runs and name == f"job-{run}"
        return kind == "Pod" or (kind == "Secret" and name == f"job-{job}")


def of_jobs(cluster: Cluster) -> OfJobs:
    rows = Job.objects.filter(pool__cluster=cluster, deleted_at=None).values_list("pk", "tenant__slug")
    live = Attempt.objects.filter(part__job__pool__cluster=cluster, ended_at=None).values_list(
        "run", flat=True
    )
    return OfJobs(
        {str(pk): Tenant(slug=slug).namespace for pk, slug in rows.iterator()},
        frozenset(map(str, live.iterator())),
    )
