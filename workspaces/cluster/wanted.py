"""Input for the objects of one run, gathered from rows before anything is applied."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from uuid import UUID

from accounts.credentials.secrets import decrypt
from accounts.models import Tenant
from clusters import labels
from clusters.models import Cluster, Gpu, Installation
from quotas import sharing
from quotas.models import Claim, Pool
from quotas.namespaces import ensuring
from quotas.namespaces.manifests import tenant_labels
from quotas.pools.nodes import unwell_nodes
from storage import connections
from storage.models import Mount
from storage.mounts import mounting
from workspaces.access import owner_may_use
from workspaces.models import Workspace
from workspaces.state import jupyter


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Input for the objects of one run. What takes queries or secrets is read when it is needed."""

    workspace: Workspace
    instance: UUID
    run: UUID
    node: str
    requested_cpu_millicores: int
    requested_memory_mib: int
    shared: Shared

    @cached_property
    def bad_gpus(self) -> tuple[str, ...]:
        """GPUs that it must not get, if the way of sharing supports that."""
        return self.shared.bad_gpus(self.workspace.pool)

    @cached_property
    def unwell_nodes(self) -> Mapping[str, str]:
        """Nodes that it must not start on, though Kubernetes would place it there."""
        return {} if self.workspace.ready_at else self.shared.unwell_nodes(self.workspace.pool)

    @cached_property
    def secret(self) -> SecretValues:
        """Values in clear, made only when they are needed."""
        return secret_values(self.workspace, self.shared.connections.get(self.workspace.pk, {}))

    @property
    def mounts(self) -> Sequence[Mount]:
        """Volumes that it mounts: its home, its own disk, and those that its person chose."""
        return self.shared.mounts.get(self.workspace.pk, [])

    @property
    def own(self) -> Sequence[Mount]:
        """The mounts of its home and its own disk."""
        return mounting.own(self.mounts)

    @property
    def namespace(self) -> str:
        return self.workspace.tenant.namespace

    @property
    def name(self) -> str:
        return self.workspace.object_name

    @property
    def cluster(self) -> Cluster:
        return self.workspace.pool.cluster

    @property
    def mounts_driver(self) -> bool:
        """True if its GPUs need the driver of an old node."""
        return bool(self.workspace.units and self.workspace.pool.driver_path)

    @property
    def labels(self) -> dict[str, str]:
        return tenant_labels(self.workspace.tenant, self.instance) | {
            labels.OWNER: label_value(self.workspace.owner.get_username()),
            labels.WORKSPACE: str(self.workspace.pk),
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class SecretValues:
    """Clear values for the Secret, which repr does not show."""

    jupyter_token: str
    gateway_token: str
    host_key: str
    authorized_keys: Sequence[str]
    env: Mapping[str, str]


def label_value(text: str) -> str:
    """Return a text as a label's value: at most 63 of letters, digits, `-_.`, an alphanumeric at both ends."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:63].strip("-_.")


class Shared:
    """What several looks need, read once for a batch of them. `of`: the workspaces that are looked at."""

    def __init__(self, of: Collection[UUID] = ()) -> None:
        self._of = of

    @cached_property
    def mounts(self) -> Mapping[UUID, Sequence[Mount]]:
        return mounting.mounts_of(self._of)

    @cached_property
    def connections(self) -> Mapping[UUID, Mapping[str, str]]:
        """Secret environment that connections bring, by workspace."""
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


def wanted_of(workspace: Workspace, claim: Claim, shared: Shared) -> Wanted:
    return Wanted(
        workspace=workspace,
        instance=shared.instance,
        run=claim.pk,
        node=claim.node,
        requested_cpu_millicores=claim.cpu_millicores,
        requested_memory_mib=claim.memory_mib,
        shared=shared,
    )


def secret_values(workspace: Workspace, of_connections: Mapping[str, str]) -> SecretValues:
    """Return what goes into the Secret. What the person set themselves comes before what a connection brings."""
    secret = workspace.secret
    brought = {name: value for name, value in of_connections.items() if name not in workspace.env}
    return SecretValues(
        jupyter_token=jupyter.token(workspace),
        gateway_token=jupyter.gateway_token(workspace),
        host_key=decrypt(secret.host_key),
        authorized_keys=authorized_keys(workspace),
        env=brought | secret.clear_env(),
    )


def authorized_keys(workspace: Workspace) -> list[str]:
    """SSH keys of the owner; none once they were deactivated, removed from the tenant, or became a viewer."""
    if not owner_may_use(workspace):
        return []
    return list(workspace.owner.ssh_keys.values_list("public_key", flat=True))
