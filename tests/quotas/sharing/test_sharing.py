"""Ways of sharing: a request becomes a portion, a sentence, a refusal and pieces of a pod."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.errors import Invalid
from clusters.nodes import hami
from devcluster import gpus
from quotas import sharing
from quotas.models import Pool, Sharing
from quotas.sharing import STRATEGIES, Found, PodParts, Portion, found_on
from quotas.sharing.found import instances_per_gpu

GIB = 1024
VOID = {"NVIDIA_VISIBLE_DEVICES": "void"}


def pool(way: str = "exclusive", **changes: Any) -> Pool:
    usual: dict[str, dict[str, Any]] = {
        "exclusive": {},
        "mig": {"resource_name": "nvidia.com/mig-1g.10gb", "units_per_gpu": 7, "unit_memory_mib": 9728},
        "time-slicing": {"units_per_gpu": 4, "unit_memory_mib": 20 * GIB},
        "mps": {"units_per_gpu": 10, "unit_memory_mib": 8 * GIB},
        "hami": {"units_per_gpu": 100},
        "gpu-manager": {"units_per_gpu": 100, "resource_name": "tencent.com/vcuda-core"},
    }
    return Pool(**({"sharing": way, "gpu_memory_mib": 80 * GIB} | usual[way] | changes))


def portion(of: Pool, gpus: str | None = None, memory_mib: int | None = None) -> Portion:
    return sharing.of(of).portion(of, None if gpus is None else Fraction(gpus), memory_mib)


def refusal(of: Pool, gpus: str | None = None, memory_mib: int | None = None) -> tuple[list[str], str]:
    with pytest.raises(Invalid) as caught:
        portion(of, gpus, memory_mib)
    return list(caught.value.fields), caught.value.message


def test_every_way_has_its_own_sentence_about_neighbours() -> None:
    assert set(STRATEGIES) == set(Sharing)
    assert [str(STRATEGIES[way].isolation) for way in Sharing] == [
        "dedicated", "hardware slice", "none", "hard cap", "soft cap", "soft cap"
    ]  # fmt: skip
    assert len({str(one.neighbours) for one in STRATEGIES.values()}) == len(Sharing)


@pytest.mark.parametrize(
    ("of", "gpus", "memory_mib", "units"),
    [
        (pool(), None, None, 1),
        (pool(), "2", None, 2),
        (pool(), None, 100 * GIB, 2),
        (pool("mig"), None, None, 1),
        (pool("mig"), "0.14", None, 1),  # as people write a seventh
        (pool("time-slicing"), None, None, 1),
        (pool("time-slicing"), "3/4", None, 3),
        (pool("time-slicing"), None, 25 * GIB, 2),
        (pool("mps"), "1", None, 10),
        (pool("gpu-manager"), "0.3", None, 30),
        (pool("gpu-manager"), "2", None, 200),
        (pool("gpu-manager"), None, 7680, 10),
        (pool("gpu-manager"), None, 100 * GIB, 200),
        (pool("gpu-manager"), "0.1", 40 * GIB, 50),
        (pool("gpu-manager"), None, None, 100),
    ],
)
def test_a_request_becomes_whole_units(
    of: Pool, gpus: str | None, memory_mib: int | None, units: int
) -> None:
    assert portion(of, gpus, memory_mib) == Portion(units)


@pytest.mark.parametrize(
    ("gpus", "memory_mib", "expected"),
    [
        ("0.5", 20 * GIB, Portion(50, 1, 20 * GIB, 50)),
        ("0.5", None, Portion(50, 1, 40 * GIB, 50)),
        (None, 20 * GIB, Portion(25, 1, 20 * GIB, 25)),
        ("0.1", 60 * GIB, Portion(75, 1, 60 * GIB, 10)),  # billed by its largest part
        ("1.5", None, Portion(150, 2, 60 * GIB, 75)),
        ("2", None, Portion(200, 2, 80 * GIB, 100)),
        ("1", 20 * GIB, Portion(100, 1, 80 * GIB, 100)),  # all of the cores is the whole card
        ("0.5", 100 * GIB, Portion(126, 2, 50 * GIB, 25)),
        (None, None, Portion(100, 1, 80 * GIB, 100)),
    ],
)
def test_hami_gives_the_same_share_of_each_card(
    gpus: str | None, memory_mib: int | None, expected: Portion
) -> None:
    assert portion(pool("hami"), gpus, memory_mib) == expected


@given(
    st.fractions(Fraction(1, 100), 8, max_denominator=100),
    st.none() | st.integers(1, 8 * 80 * GIB),
)
def test_a_share_of_hami_is_at_least_the_request_and_at_most_its_cards(
    gpus: Fraction, memory_mib: int | None
) -> None:
    of = pool("hami")
    got = sharing.of(of).portion(of, gpus, memory_mib)
    assert got.card_memory_mib is not None and got.card_cores is not None
    assert got.cards * got.card_cores >= 100 * gpus
    assert got.cards * got.card_memory_mib >= (memory_mib or 0)
    assert got.card_memory_mib <= 80 * GIB and got.card_cores <= 100
    assert got.units <= 100 * got.cards
    again = Fraction(got.cards * got.card_cores, 100), got.cards * got.card_memory_mib
    assert sharing.of(of).portion(of, *again) == got  # a clone has the same


@pytest.mark.parametrize(
    ("of", "asked", "field", "said"),
    [
        (pool(), ("0.5", None), "gpus", "This pool gives whole GPUs. Ask for a multiple."),
        (pool(), ("1", 100 * GIB), "gpu_memory_mib", "has 80\xa0GiB of GPU memory"),
        (pool("time-slicing"), ("0.3", None), "gpus", "This pool gives 1/4 of a GPU at a time."),
        (pool("time-slicing"), ("0", None), "gpus", "This pool gives 1/4 of a GPU at a time."),
        (pool("time-slicing", one_unit_each=True), ("0.5", None), "gpus", "Each gets one part at most."),
        (pool("mps", one_unit_each=True), (None, 9 * GIB), "gpu_memory_mib", "1/10 of a GPU at a time. Each"),
        (pool("mig"), ("2/7", None), "gpus", "A program sees one MIG instance only"),
        (pool("gpu-manager"), ("1.5", None), "gpus", "any share of one GPU from 1/100, or whole GPUs"),
        (pool("hami"), ("0", None), "gpus", "This pool gives any share of a GPU from 1/100"),
        (
            pool("hami", gpu_memory_mib=None),
            ("0.5", None),
            "gpu_memory_mib",
            "Nobody has said how much memory",
        ),
        (pool("gpu-manager", gpu_memory_mib=None), (None, 1), "gpu_memory_mib", "Nobody has said how much"),
        (pool(gpu_memory_mib=None), (None, 1), "gpu_memory_mib", "Nobody has said how much memory"),
        (pool(resource_name=""), ("1", None), "gpus", "This pool has no GPUs."),
    ],
)
def test_a_request_that_the_pool_cannot_give_is_refused(
    of: Pool, asked: tuple[str | None, int | None], field: str, said: str
) -> None:
    fields, message = refusal(of, *asked)
    assert fields == [field]
    assert said in message


def test_a_pod_requests_its_portion_by_the_resources_of_its_device_plugin() -> None:
    def parts(way: str, portion: Portion, **changes: Any) -> PodParts:
        return sharing.pod(pool(way, **changes), portion)

    assert parts("exclusive", Portion(2)) == PodParts({"nvidia.com/gpu": "2"})
    assert parts("mig", Portion(1)) == PodParts({"nvidia.com/mig-1g.10gb": "1"})
    renamed = {"resource_name": "nvidia.com/gpu.shared"}
    assert parts("time-slicing", Portion(1), **renamed) == PodParts({"nvidia.com/gpu.shared": "1"})
    assert parts("mps", Portion(3)) == PodParts({"nvidia.com/gpu": "3"}, brings_shm=True)
    binpack = {f"hami.io/{what}-scheduler-policy": "binpack" for what in ("gpu", "node")}
    assert parts("hami", Portion(150, 2, 61_440, 75)) == PodParts(
        {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "61440", "nvidia.com/gpucores": "75"},
        binpack,
        "hami-scheduler",
    )
    core, memory = "tencent.com/vcuda-core", "tencent.com/vcuda-memory"
    limit = {"tencent.com/vcuda-core-limit": "30"}
    assert parts("gpu-manager", Portion(30)) == PodParts({core: "30", memory: "96"}, limit)
    assert parts("gpu-manager", Portion(200)) == PodParts({core: "200", memory: "640"})


def test_a_pod_without_nvidia_gpus_must_not_see_any() -> None:
    assert sharing.pod(pool(), Portion()) == PodParts(environment=VOID)
    assert sharing.pod(pool(resource_name=""), Portion()) == PodParts(environment=VOID)
    assert sharing.pod(pool(resource_name="amd.com/gpu"), Portion(1)) == PodParts(
        {"amd.com/gpu": "1"}, environment=VOID
    )


@pytest.mark.parametrize("resource", ["amd.com/gpu", "rdma/hca", "gpu.intel.com/i915"])
def test_devices_of_other_vendors_need_only_their_resource_name(resource: str) -> None:
    of = pool(resource_name=resource, gpu_memory_mib=None)
    assert portion(of, "2") == Portion(2)
    assert sharing.pod(of, Portion(2)).resources == {resource: "2"}
    assert sharing.of(of).ceiling(of, 3) == {f"requests.{resource}": 3}


def test_the_ceiling_is_the_most_that_the_gpus_can_come_to() -> None:
    def ceiling(way: str) -> dict[str, int]:
        return sharing.of(pool(way)).ceiling(pool(way), 2)

    assert ceiling("exclusive") == {"requests.nvidia.com/gpu": 2}
    assert ceiling("time-slicing") == {"requests.nvidia.com/gpu": 8}
    assert ceiling("hami") == {
        "requests.nvidia.com/gpu": 200,
        "limits.nvidia.com/gpucores": 200,
        "limits.nvidia.com/gpumem": 160 * GIB,
    }
    assert ceiling("gpu-manager") == {
        "requests.tencent.com/vcuda-core": 200, "requests.tencent.com/vcuda-memory": 640
    }  # fmt: skip


A100 = {"product": "NVIDIA-A100-SXM4-80GB", "memory_mib": 81_920, "compute": "8.0", "count": 2}
SHARED = "nvidia.com/gpu.shared"


@pytest.mark.parametrize(
    ("announced", "found"),
    [
        ({}, Found(Sharing.EXCLUSIVE, "nvidia.com/gpu", 2, 1, 81_920)),
        (
            {"sharing": "time-slicing", "replicas": 4},
            Found(Sharing.TIME_SLICING, "nvidia.com/gpu", 8, 4, 81_920, 20_480),
        ),
        (
            {"sharing": "mps", "replicas": 10, "rename": True},
            Found(Sharing.MPS, SHARED, 20, 10, 81_920, 8192),
        ),
        (
            {"sharing": "mig", "profile": "1g.10gb", "instances": 7},
            Found(Sharing.MIG, "nvidia.com/mig-1g.10gb", 14, 7, 81_920, 9728, "1g.10gb"),
        ),
        (
            {"sharing": "mig", "profile": "3g.40gb", "instances": 2, "strategy": "single"},
            Found(Sharing.MIG, "nvidia.com/gpu", 4, 2, 81_920, 40_448, "3g.40gb"),
        ),
        ({"sharing": "hami"}, Found(Sharing.HAMI, "nvidia.com/gpu", 200, 100, 81_920)),
        ({"sharing": "gpu-manager"}, Found(Sharing.GPU_MANAGER, "tencent.com/vcuda-core", 200, 100, 81_920)),
    ],
)
def test_a_nodes_way_of_sharing_is_detected(announced: dict[str, Any], found: Found) -> None:
    node = A100 | announced
    resources = {name: int(amount) for name, amount in gpus.resources(node).items()}
    cards = hami.cards_of_node(gpus.annotations("n", node))
    assert found_on(gpus.labels(node), resources, cards) == [found]
    assert found.gpus == 2


def test_a_node_whose_cards_are_cut_in_two_ways_has_two_kinds_of_instances() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
    resources = {"nvidia.com/mig-1g.10gb": 7, "nvidia.com/mig-3g.40gb": 2, "nvidia.com/gpu": 0}
    found = {one.mig_profile: (one.units, one.units_per_gpu) for one in found_on(labels, resources)}
    assert found == {"1g.10gb": (7, 7), "3g.40gb": (2, 2)}


@pytest.mark.parametrize(
    ("profile", "gpu_gb", "instances"),
    [("1g.10gb", 80, 7), ("1g.20gb", 80, 4), ("2g.20gb", 80, 3), ("3g.40gb", 80, 2), ("7g.80gb", 80, 1),
     ("1g.6gb", 24, 4), ("2g.12gb", 24, 2), ("1g.18gb", 141, 7), ("1g.5gb", None, 7), ("odd", 80, 1)],
)  # fmt: skip
def test_a_mig_profile_gives_the_number_of_instances_per_gpu(
    profile: str, gpu_gb: int | None, instances: int
) -> None:
    assert instances_per_gpu(profile, gpu_gb) == instances
