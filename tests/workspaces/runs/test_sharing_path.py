"""Ways of sharing a GPU, from a launch to a pod that runs on a node which announces it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from accounts.errors import Invalid
from clusters.api import Api
from clusters.models import Node, PodUsage
from clusters.quantities import parse
from tests.shared.driving import claim_of, drive, in_phase
from tests.workspaces.many_nodes import ELSEWHERE, House, house, many_nodes, own_rights
from workspaces.api.representation import gpu_memory_mib, gpus
from workspaces.models import Workspace
from workspaces.runs import lifecycle

__all__ = ["house", "many_nodes", "own_rights"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

by_hami = pytest.mark.skipif(ELSEWHERE is not None, reason="its pods wait for HAMi's scheduler")


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
        assert {name: parse("nvidia.com/gpu", value) for name, value in asked.items()} == {
            name: int(value) for name, value in limits.items()
        }
    assert not [entry for entry in container["env"] if entry["name"] == "NVIDIA_VISIBLE_DEVICES"]
    assert claim_of(workspace).units == units
    assert gpus(workspace) == round(units / pool.units_per_gpu, 4)
    assert gpu_memory_mib(workspace) == memory_mib


@by_hami
def test_a_share_that_fits_on_no_single_gpu_waits(
    house: House,
) -> None:
    pool = house.pool_of("hami")
    first = house.started(pool, "first", gpus=Fraction(3, 5))
    second = house.started(pool, "second", gpus=Fraction(3, 5))
    given = {usage.devices[0]["id"] for usage in PodUsage.objects.exclude(run=None)}
    assert len(given) == 2  # one on each card: each has 40 percent free
    assert house.started(pool, "beside", gpus=Fraction(2, 5)).phase == "ready"
    waits = drive(house.launched(pool, "waits", gpus=Fraction(1, 2)), in_phase("waiting"))
    assert claim_of(waits).reason_code
    for workspace in (first, second):
        lifecycle.stop(house.cast.alice, workspace)
        drive(workspace, in_phase("stopped"))
        house.look()
    assert drive(waits, in_phase("ready")).node == "hami"


def test_an_impossible_share_is_refused_before_anything_is_created(house: House) -> None:
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
