"""Berth on a cluster whose nodes differ in their GPUs and in how they share them.

On devcluster, or on the API that $BERTH_TEST_KUBECONFIG names, if its Services get addresses and its volumes are made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from accounts.access import Actor
from accounts.models import Tenant
from clusters.models import Installation, Node
from clusters.nodes.inventory import NodeTable, UsageTable, node_values
from devcluster.testing.cluster import running
from devcluster.testing.kube import Kube
from quotas import sharing
from quotas.models import Pool, Quota
from tests.cast import Cast
from tests.own_rights import OwnRights, bind
from tests.played_nodes import announced
from tests.shared.driving import api_of_admin, drive, in_phase
from tests.workspaces.specs import spec
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import launch
from workspaces.models import Workspace
from workspaces.runs import lifecycle

A100 = "{product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, compute: '8.0', count: 2"
NODES = f"""
nodes:
  - {{name: whole, cpu: 64, memory: 256Gi, gpus: {A100}}}}}
  - {{name: slices, cpu: 64, memory: 256Gi, gpus: {A100}, sharing: time-slicing, replicas: 4}}}}
  - {{name: renamed, cpu: 64, memory: 256Gi, gpus: {A100}, sharing: time-slicing, replicas: 4, rename: true}}}}
  - {{name: mps, cpu: 64, memory: 256Gi, gpus: {A100}, sharing: mps, replicas: 10, rename: true}}}}
  - {{name: mixed, cpu: 64, memory: 256Gi, gpus: {A100}, sharing: mig, profile: 1g.10gb, instances: 7}}}}
  - {{name: single, cpu: 64, memory: 256Gi,
     gpus: {A100}, sharing: mig, profile: 3g.40gb, instances: 2, strategy: single}}}}
  - {{name: hami, cpu: 64, memory: 256Gi, gpus: {A100}, sharing: hami}}}}
  - {{name: tencent, cpu: 64, memory: 256Gi, gpus: {A100}, sharing: gpu-manager}}}}
  - {{name: ada, cpu: 64, memory: 256Gi, labels: {{berth.dev/gpu.ecc: "true"}}, gpus: {{
     product: NVIDIA-RTX-6000-Ada-Generation, memory_mib: 49140, compute: "8.9", family: ada-lovelace, count: 2}}}}
  - {{name: ampere, cpu: 64, memory: 256Gi, labels: {{berth.dev/gpu.ecc: "false"}}, gpus: {{
     product: NVIDIA-RTX-A5000, memory_mib: 24564, compute: "8.6", family: ampere, count: 2}}}}
  - {{name: hopper, cpu: 64, memory: 256Gi, taints: [{{key: dedicated, value: gpu, effect: NoSchedule}}], gpus: {{
     product: NVIDIA-H100-80GB-HBM3, memory_mib: 81559, compute: "9.0", family: hopper, count: 2}}}}
images:
  berth.local/jupyter:1: {{}}
"""
ELSEWHERE = os.environ.get("BERTH_TEST_KUBECONFIG")


@pytest.fixture(scope="session")
def many_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("many-nodes")
    if ELSEWHERE:
        for _nodes in announced(Path(ELSEWHERE), folder, NODES):
            yield Path(ELSEWHERE)
        return
    for cluster in running(folder, "--pods", "played", nodes=NODES):
        yield cluster.kubeconfig


@pytest.fixture(scope="session")
def own_rights(many_nodes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    own = OwnRights(many_nodes, tmp_path_factory.mktemp("own"))
    yield own.kubeconfig
    own.clear_away()


class House:
    """Berth on that cluster, with the rights of its manifest, and pools made by each test."""

    def __init__(self, cast: Cast, kubeconfig: Path, own_rights: Path) -> None:
        self.cast, self.api, self.kube = cast, api_of_admin(kubeconfig), Kube(kubeconfig)
        self._foreign: list[str] = []
        cast.cluster.kubeconfig_path = str(own_rights)
        bind(cast.cluster)
        cast.cluster.save()
        for tenant in (cast.demo, cast.second):
            tenant.slug = f"{tenant.slug}-{uuid4().hex[:8]}"
            tenant.save()
        Quota.objects.all().delete()
        self.look()

    def look(self) -> None:
        """Update the rows as the watcher would have by now."""
        cluster, installation = self.cast.cluster, str(Installation.current_id())
        NodeTable(cluster).replace(node_values(body) for body in self.api.list("Node"))
        usage = UsageTable(cluster, installation)
        usage.replace(usage.values(body) for body in self.api.list("Pod"))

    def pool_of(self, name: str, **changes: Any) -> Pool:
        """Make a pool as the node announces itself."""
        node = Node.objects.get(name=name)
        (found,) = sharing.found_on(node.labels, node.allocatable, node.devices)
        return self.pool(
            name,
            node_labels={"kubernetes.io/hostname": name},
            sharing=found.sharing,
            resource_name=found.resource,
            units_per_gpu=found.units_per_gpu,
            gpu_memory_mib=found.gpu_memory_mib,
            unit_memory_mib=found.unit_memory_mib,
            mig_profile=found.mig_profile,
            **changes,
        )

    def pool(self, slug: str, **values: Any) -> Pool:
        pool = Pool.objects.create(slug=slug, name=slug, cluster=self.cast.cluster, **values)
        self.quota(pool, 2)
        return pool

    def quota(self, pool: Pool, gpus: int, borrowing: int = 0, tenant: Tenant | None = None) -> None:
        Quota.objects.update_or_create(
            tenant=tenant or self.cast.demo,
            pool=pool,
            defaults={"nominal_gpus": gpus, "borrowing_limit_gpus": borrowing},
        )

    def launched(self, pool: Pool, name: str = "exp", by: Actor | None = None, **size: Any) -> Workspace:
        tenant = self.cast.demo if by is None else self.cast.second
        asked = SizeAsked(pool=pool.slug, cpu_millicores=1000, memory_mib=1024, **size)
        return launch(by or self.cast.alice, spec(tenant=tenant.slug, name=name, size=asked))

    def started(self, pool: Pool, name: str = "exp", **size: Any) -> Workspace:
        workspace = drive(self.launched(pool, name, **size), in_phase("ready"))
        self.look()
        return workspace

    def pod(self, workspace: Workspace) -> dict[str, Any]:
        found = self.api.get("Pod", workspace.tenant.namespace, workspace.object_name)
        assert found is not None
        return found

    def foreign_pod(self, node: str, units: dict[str, str]) -> str:
        """Run somebody else's pod on the node, with so many units. Return its path."""
        name, pods = f"foreign-{uuid4().hex[:8]}", "/api/v1/namespaces/default/pods"
        container = {"name": "main", "image": "berth.local/jupyter:1", "resources": {"limits": units}}
        spec = {"nodeName": node, "containers": [container], "automountServiceAccountToken": False}
        self.kube.create(pods, {"metadata": {"name": name}, "spec": spec})
        self._foreign.append(f"{pods}/{name}")
        self.kube.until(self._foreign[-1], lambda pod: pod["status"]["phase"] == "Running")
        return self._foreign[-1]

    def clear_away(self) -> None:
        for path in self._foreign:
            self.kube.call("DELETE", path, gracePeriodSeconds="0")
        for workspace in Workspace.objects.exclude(phase__in=("stopped", "failed")):
            lifecycle.stop(self.cast.admin, workspace)
            drive(workspace, in_phase("stopped"))
        for tenant in (self.cast.demo, self.cast.second):
            self.api.delete("Namespace", None, tenant.namespace)


@pytest.fixture
def house(cast: Cast, many_nodes: Path, own_rights: Path) -> Iterator[House]:
    house = House(cast, many_nodes, own_rights)
    yield house
    house.clear_away()
