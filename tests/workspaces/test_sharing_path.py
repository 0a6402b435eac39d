"""Every way of sharing a GPU, from a launch to a pod that runs on a node which announces it.

On devcluster, or where $BERTH_TEST_KUBECONFIG names an API whose Services get addresses and whose volumes are made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from accounts.errors import Invalid
from clusters.api import Api
from clusters.inventory import NodeTable, UsageTable, node_values
from clusters.models import Installation, Node, PodUsage
from quotas import sharing
from quotas.models import Pool, Quota
from tests.cast import Cast
from tests.devcluster.cluster import running
from tests.own_rights import OwnRights
from tests.played_nodes import announced
from tests.workspaces.test_path import api_of_admin, claim_of, drive, in_phase
from workspaces import lifecycle
from workspaces.launch import LaunchSpec, launch
from workspaces.models import Workspace
from workspaces.representation import gpu_memory_mib, gpus
from workspaces.sizing import SizeAsked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

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
images:
  berth.local/jupyter:1: {{}}
"""


ELSEWHERE = os.environ.get("BERTH_TEST_KUBECONFIG")
by_hami = pytest.mark.skipif(ELSEWHERE is not None, reason="its pods wait for HAMi's scheduler")


@pytest.fixture(scope="module")
def sharing_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("sharing")
    if ELSEWHERE:
        for _nodes in announced(Path(ELSEWHERE), folder, NODES):
            yield Path(ELSEWHERE)
        return
    for cluster in running(folder, "--pods", "played", nodes=NODES):
        yield cluster.kubeconfig


@pytest.fixture(scope="module")
def own_rights(sharing_cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    own = OwnRights(sharing_cluster, tmp_path_factory.mktemp("own"))
    yield own.kubeconfig
    own.clear_away()


class House:
    """Berth on that cluster, with a pool of one node and the rights of its manifest."""

    def __init__(self, cast: Cast, kubeconfig: Path, own_rights: Path) -> None:
        self.cast, self.api = cast, api_of_admin(kubeconfig)
        cast.cluster.kubeconfig_path = str(own_rights)
        cast.cluster.save()
        cast.demo.slug = f"demo-{uuid4().hex[:8]}"
        cast.demo.save()
        self.look()

    def look(self) -> None:
        """What the watcher would have seen by now."""
        cluster, installation = self.cast.cluster, str(Installation.current_id())
        NodeTable(cluster).replace(node_values(body) for body in self.api.list("Node"))
        usage = UsageTable(cluster, installation)
        usage.replace(usage.values(body) for body in self.api.list("Pod"))

    def pool_of(self, name: str, **changes: Any) -> Pool:
        """As the node announces itself."""
        node = Node.objects.get(name=name)
        (found,) = sharing.found_on(node.labels, node.allocatable, node.devices)
        pool = Pool.objects.create(
            slug=name,
            name=name,
            cluster=self.cast.cluster,
            node_labels={"kubernetes.io/hostname": name},
            sharing=found.sharing,
            resource_name=found.resource,
            units_per_gpu=found.units_per_gpu,
            gpu_memory_mib=found.gpu_memory_mib,
            unit_memory_mib=found.unit_memory_mib,
            mig_profile=found.mig_profile,
            **changes,
        )
        Quota.objects.create(tenant=self.cast.demo, pool=pool, nominal_gpus=2)
        return pool

    def launched(self, pool: Pool, name: str = "exp", **size: Any) -> Workspace:
        asked = SizeAsked(pool=pool.slug, cpu_millicores=1000, memory_mib=1024, **size)
        spec = LaunchSpec(tenant=self.cast.demo.slug, name=name, image="jupyter", size=asked)
        return launch(self.cast.alice, spec)

    def started(self, pool: Pool, name: str = "exp", **size: Any) -> Workspace:
        workspace = drive(self.launched(pool, name, **size), in_phase("ready"))
        self.look()
        return workspace

    def pod(self, workspace: Workspace) -> dict[str, Any]:
        found = self.api.get("Pod", self.cast.demo.namespace, f"{workspace.object_name}-0")
        assert found is not None
        return found

    def clear_away(self) -> None:
        for workspace in Workspace.objects.exclude(phase__in=("stopped", "failed")):
            lifecycle.stop(self.cast.alice, workspace)
            drive(workspace, in_phase("stopped"))
        self.api.delete("Namespace", None, self.cast.demo.namespace)


@pytest.fixture
def house(cast: Cast, sharing_cluster: Path, own_rights: Path) -> Iterator[House]:
    house = House(cast, sharing_cluster, own_rights)
    yield house
    house.clear_away()


@pytest.mark.parametrize(
    ("node", "size", "units", "limits", "memory_mib"),
    [
        ("whole", {"gpus": Fraction(2)}, 2, {"nvidia.com/gpu": "2"}, 163_840),
        ("slices", {"gpus": Fraction(1, 4)}, 1, {"nvidia.com/gpu": "1"}, 20_480),
        ("renamed", {"gpus": Fraction(1, 2)}, 2, {"nvidia.com/gpu.shared": "2"}, 40_960),
        ("mps", {"gpu_memory_mib": 20_000}, 3, {"nvidia.com/gpu.shared": "3"}, 24_576),
        ("mixed", {}, 1, {"nvidia.com/mig-1g.10gb": "1"}, 9728),
        ("single", {"gpus": Fraction(1, 2)}, 1, {"nvidia.com/gpu": "1"}, 40_448),
        pytest.param(
            "hami",
            {"gpus": Fraction(1, 2), "gpu_memory_mib": 20_480},
            50,
            {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20480", "nvidia.com/gpucores": "50"},
            20_480,
            marks=by_hami,
        ),
        (
            "tencent",
            {"gpus": Fraction(3, 10)},
            30,
            {"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "96"},
            24_576,
        ),
    ],
)
def test_a_launch_ends_in_a_running_pod_on_a_node_that_shares_its_gpus_so(
    house: House, node: str, size: dict[str, Any], units: int, limits: dict[str, str], memory_mib: int
) -> None:
    pool = house.pool_of(node)
    workspace = house.started(pool, **size)
    pod = house.pod(workspace)
    (container,) = pod["spec"]["containers"]
    assert (pod["status"]["phase"], pod["spec"]["nodeName"]) == ("Running", node)
    for kind in ("requests", "limits"):
        asked = {name: value for name, value in container["resources"][kind].items() if "/" in name}
        assert {name: amount(value) for name, value in asked.items()} == {
            name: int(value) for name, value in limits.items()
        }
    assert not [entry for entry in container["env"] if entry["name"] == "NVIDIA_VISIBLE_DEVICES"]
    assert claim_of(workspace).units == units
    assert gpus(workspace) == round(units / pool.units_per_gpu, 4)
    assert gpu_memory_mib(workspace) == memory_mib


def amount(quantity: str) -> int:
    from clusters.quantities import parse

    return parse("nvidia.com/gpu", quantity)


@by_hami
def test_shares_of_one_gpu_fill_it_and_who_no_longer_fits_waits_though_there_is_room_in_sum(
    house: House,
) -> None:
    pool = house.pool_of("hami")
    first = house.started(pool, "first", gpus=Fraction(3, 5))
    second = house.started(pool, "second", gpus=Fraction(3, 5))
    given = {usage.devices[0]["id"] for usage in PodUsage.objects.exclude(run=None)}
    assert len(given) == 2  # one on each card: 40 percent are free twice
    assert house.started(pool, "beside", gpus=Fraction(2, 5)).phase == "ready"
    waits = drive(house.launched(pool, "waits", gpus=Fraction(1, 2)), in_phase("waiting"))
    assert claim_of(waits).reason_code
    for workspace in (first, second):
        lifecycle.stop(house.cast.alice, workspace)
        drive(workspace, in_phase("stopped"))
        house.look()
    assert drive(waits, in_phase("ready")).node == "hami"


def test_what_a_pool_cannot_express_is_refused_before_anything_is_made(house: House) -> None:
    pool = house.pool_of("mixed")
    with pytest.raises(Invalid, match=r"1/7 of a GPU at a time. A program sees one MIG instance only"):
        house.launched(pool, gpus=Fraction(2, 7))
    assert not Workspace.objects.exists()


@by_hami
def test_nobody_gets_a_card_that_is_cordoned(house: House) -> None:
    api: Api = house.api
    pool = house.pool_of("hami")
    ids = [device["id"] for device in Node.objects.get(name="hami").devices]
    annotations: dict[str, Any] = {"hami.io/device-cordon": ",".join(ids)}
    api.merge_patch("Node", None, "hami", {"metadata": {"annotations": annotations}})
    house.look()
    waits = drive(house.launched(pool, gpus=Fraction(1, 2)), in_phase("waiting"))
    annotations["hami.io/device-cordon"] = None
    api.merge_patch("Node", None, "hami", {"metadata": {"annotations": annotations}})
    house.look()
    assert drive(waits, in_phase("ready")).node == "hami"
