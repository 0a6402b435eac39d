"""Extended resources beside GPUs, as for RDMA: each pod requests them, and nodes have room for so many."""

from __future__ import annotations

import pytest

from accounts.errors import Invalid
from clusters.models import Node, PodUsage
from quotas.models import Claim, Pool, Quota
from quotas.pools.nodes import nodes_of
from tests.shared.stage import Stage, again

pytestmark = pytest.mark.django_db

HCA = "rdma/hca"


@pytest.fixture
def fast(stage: Stage) -> Stage:
    """The stage with two adapters on gpu-1, none on gpu-2, and one for each GPU of a pod."""
    Quota.objects.update(nominal_gpus=8)
    Pool.objects.update(extra_resources={HCA: 1})
    stage.pool.refresh_from_db()
    node = Node.objects.get(name="gpu-1")
    stage.change_node("gpu-1", allocatable=node.allocatable | {HCA: 2})
    return stage


def left(pool: Pool) -> dict[str, int]:
    return {node.name: dict(node.free.extra)[HCA] for node in nodes_of([pool])[pool.id].healthy}


def test_a_claim_takes_as_many_as_it_has_gpus(fast: Stage) -> None:
    assert left(fast.pool) == {"gpu-1": 2, "gpu-2": 0}
    claim = fast.running(2)
    assert (claim.node, claim.extra) == ("gpu-1", {HCA: 2})
    assert left(fast.pool) == {"gpu-1": 0, "gpu-2": 0}


def test_who_finds_none_free_waits_and_reads_why(fast: Stage) -> None:
    fast.running(1)
    waits = fast.request(2)
    assert fast.admit() == 0
    assert (again(waits).reason_code, again(waits).reason_data) == (
        "no_free_extra",
        {"resource": HCA, "asked": 2, "free": 1},
    )


def test_more_than_any_node_has_is_refused(fast: Stage) -> None:
    with pytest.raises(Invalid) as refused:
        fast.request(3)
    assert refused.value.code == "no_node_has_extra"
    with pytest.raises(Invalid) as refused:
        fast.request(1, nodes=3)
    assert refused.value.code == "no_room_for_so_many"


def test_pods_of_others_take_them_too(fast: Stage) -> None:
    pod = fast.pod("gpu-1")
    PodUsage.objects.filter(pk=pod.pk).update(requests={HCA: 1})
    assert left(fast.pool) == {"gpu-1": 1, "gpu-2": 0}


def test_each_member_takes_them_and_a_run_keeps_what_its_pod_requested(fast: Stage) -> None:
    gang = fast.running(1, nodes=2)
    assert gang.nodes == ["gpu-1", "gpu-1"]
    Pool.objects.update(extra_resources={HCA: 2})
    fast.pool.refresh_from_db()
    assert left(fast.pool) == {"gpu-1": 0, "gpu-2": 0}
    assert Claim.objects.get(pk=gang.pk).extra == {HCA: 1}


def test_a_part_of_a_gpu_and_a_pod_without_count_as_one() -> None:
    pool = Pool(units_per_gpu=4, extra_resources={HCA: 2})
    assert [pool.beside_gpus(units)[HCA] for units in (0, 1, 4, 5)] == [2, 2, 2, 4]
    assert Pool(units_per_gpu=4).beside_gpus(3) == {}
