"""Input for the pods of one run, gathered from rows before anything is applied."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any
from uuid import UUID

from accounts.models import Tenant
from clusters import labels
from clusters.models import Cluster, Gpu, Installation
from quotas import sharing
from quotas.models import Pool
from quotas.namespaces import ensuring
from quotas.namespaces.manifests import tenant_labels
from quotas.pools.nodes import unwell_nodes
from storage import connections
from storage.models import Mount
from storage.mounts import mounting
from workloads.models import Workload


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Input for the pods of one run. What takes queries is read when it is needed."""

    workload: Workload
    instance: UUID
    run: UUID
    node: str
    requested_cpu_millicores: int
    requested_memory_mib: int
    shared: Shared
    # Extended resources beside GPUs, by name.
    extra: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def bad_gpus(self) -> tuple[str, ...]:
        """GPUs that it must not get, if the way of sharing supports that."""
        return self.shared.bad_gpus(self.workload.pool)

    @cached_property
    def unwell_nodes(self) -> Mapping[str, str]:
        """Nodes that it must not start on, though Kubernetes would place it there."""
        return self.shared.unwell_nodes(self.workload.pool)

    @property
    def only_nodes(self) -> Sequence[str]:
        """Nodes that its pods must start on, together; none: its pod prefers `node`, and others of the pool will do."""
        return ()

    @property
    def secret_env(self) -> Mapping[str, str]:
        """Secret variables in clear, which a Secret holds."""
        raise NotImplementedError

    @property
    def secret_name(self) -> str:
        """Name of that Secret."""
        raise NotImplementedError

    @property
    def mounts(self) -> Sequence[Mount]:
        """Volumes that it mounts: its home, its own disk, and those that its person chose."""
        return self.shared.mounts.get(self.workload.pk, [])

    @property
    def own(self) -> Sequence[Mount]:
        """The mounts of its home and its own disk."""
        return mounting.own(self.mounts)

    @property
    def namespace(self) -> str:
        return self.workload.tenant.namespace

    @property
    def cluster(self) -> Cluster:
        return self.workload.pool.cluster

    @property
    def mounts_driver(self) -> bool:
        """True if its GPUs need the driver of an old node."""
        return bool(self.workload.units and self.workload.pool.driver_path)

    @property
    def labels(self) -> dict[str, str]:
        return tenant_labels(self.workload.tenant, self.instance) | {
            labels.OWNER: label_value(self.workload.owner.get_username()),
        }

    def object(self, api: str, kind: str, name: str, **body: Any) -> dict[str, Any]:
        """Return an object of its namespace, with its labels."""
        metadata = {"name": name, "namespace": self.namespace, "labels": self.labels}
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}


def label_value(text: str) -> str:
    """Return a text as a label's value: at most 63 of letters, digits, `-_.`, an alphanumeric at both ends."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:63].strip("-_.")


class Shared:
    """Data that several looks need, read once for a batch of them. `of`: the workloads that are looked at."""

    def __init__(self, of: Collection[UUID] = ()) -> None:
        self._of = of

    @cached_property
    def mounts(self) -> Mapping[UUID, Sequence[Mount]]:
        return mounting.mounts_of(self._of)

    @cached_property
    def connections(self) -> Mapping[UUID, Mapping[str, str]]:
        """Secret environment that connections bring, by workload."""
        return connections.environments(self._of)

    @cached_property
    def instance(self) -> UUID:
        return Installation.current_id()

    @lru_cache  # noqa: B019  (it lives as long as the batch)
    def tenant_objects(self, tenant: Tenant, cluster: Cluster) -> list[dict[str, Any]]:
        return ensuring.wanted_objects(tenant, cluster, self.instance)

    @lru_cache  # noqa: B019
    def unwell_nodes(self, pool: Pool) -> Mapping[str, str]:
        return unwell_nodes(pool)

    @lru_cache  # noqa: B019
    def bad_gpus(self, pool: Pool) -> tuple[str, ...]:
        if not sharing.of(pool).avoid_annotation:
            return ()
        bad = Gpu.objects.filter(cluster=pool.cluster_id).exclude(out_code="")
        return tuple(bad.order_by("uuid").values_list("uuid", flat=True))
