"""A broken GPU is given to nobody: its node accepts nothing new while the kubelet could hand the GPU out."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.models import Gpu, PodUsage
from quotas import queries
from quotas.models import Claim
from quotas.pools import bad_gpus, health
from quotas.pools.bad_gpus import Bad
from quotas.pools.health import Trouble
from quotas.pools.nodes import nodes_of, unwell_nodes
from tests.quotas.pools.made import node, pool
from tests.shared.stage import Stage, states


@settings(max_examples=40, deadline=None)
@given(
    bad=st.sets(st.integers(0, 3)),
    held=st.sets(st.integers(0, 3)),
    withdrawn=st.integers(0, 4),
)
def test_a_node_is_closed_whenever_the_next_pod_could_get_a_bad_gpu(
    bad: set[int], held: set[int], withdrawn: int
) -> None:
    """Four whole GPUs; the device plugin withdrew some of the bad GPUs, it is unknown which."""
    withdrawn = min(withdrawn, len(bad))
    known = [Bad(str(one), held=int(one in held)) for one in bad]
    is_closed = bad_gpus.may_be_given(pool(), known, withdrawn)
    free_and_bad = bad - held
    # Worst case: the plugin withdrew GPUs in use.
    still_given = max(0, len(free_and_bad) - max(0, withdrawn - len(bad & held)))
    assert is_closed >= bool(still_given)
    if not free_and_bad or withdrawn == len(bad):
        assert not is_closed  # not closed without need


@pytest.mark.parametrize(
    ("of", "bad", "closed"),
    [
        ({}, Bad("a"), True),
        ({}, Bad("a", held=1), False),
        ({"resource_name": ""}, Bad("a"), False),  # needs no GPU
        ({"sharing": "time-slicing", "units_per_gpu": 4}, Bad("a", held=3), True),  # one replica is free
        ({"sharing": "time-slicing", "units_per_gpu": 4}, Bad("a", held=4), False),
        ({"sharing": "hami", "units_per_gpu": 100}, Bad("a"), False),  # HAMi is told to leave it alone
        ({"sharing": "mig", "units_per_gpu": 7}, Bad("a", is_cut=False), False),  # no instance is cut from it
        ({"sharing": "mig", "units_per_gpu": 7}, Bad("a", is_cut=True), True),
        ({}, Bad("a", is_cut=True), False),
    ],
)
def test_whether_a_node_is_closed_depends_on_how_the_pool_shares_gpus(
    of: dict[str, Any], bad: Bad, closed: bool
) -> None:
    assert bad_gpus.may_be_given(pool(**of), [bad], 0) == closed


@pytest.mark.parametrize(
    ("values", "of", "trouble"),
    [
        ({"out_code": "node_short_of_disk"}, {}, Trouble.UNWELL),
        ({"out_code": "node_short_of_disk"}, {"resource_name": ""}, Trouble.UNWELL),
        ({"gpus_out_code": "gpu_uvm_missing"}, {}, Trouble.UNWELL),
        ({"gpus_out_code": "gpu_uvm_missing"}, {"resource_name": ""}, Trouble.NONE),
        ({"out_code": "node_lost", "ready": False}, {}, Trouble.NOT_READY),
    ],
)
def test_a_node_that_is_out_takes_nothing_new(
    values: dict[str, Any], of: dict[str, Any], trouble: Trouble
) -> None:
    assert health.trouble_of(node(**values), pool(**of)) == trouble


def gpus(stage: Stage, name: str, *, bad: set[int], held: dict[int, PodUsage] | None = None) -> None:
    for index in range(4):
        pod = (held or {}).get(index)
        Gpu.objects.create(
            cluster=stage.cast.cluster,
            node=name,
            uuid=f"{name}-{index}",
            index=index,
            seen_at=timezone.now(),
            held_by=[{"namespace": pod.namespace, "pod": pod.name, "container": "c"}] if pod else [],
            out_code="gpu_lost" if index in bad else "",
        )


@pytest.mark.django_db
def test_a_free_bad_gpu_keeps_new_work_off_its_node(stage: Stage) -> None:
    gpus(stage, "gpu-1", bad={2})
    gpus(stage, "gpu-2", bad={0})
    waits = stage.request(1)
    stage.admit()
    assert states([waits]) == [Claim.State.WAITING]
    reason = queries.queues_of([waits.pk])[waits.pk]["reason"]
    assert (reason["code"], "gpu-1" in reason["message"]) == ("no_node_ready", False)
    Gpu.objects.filter(node="gpu-2").update(out_code="")
    stage.admit()
    assert states([waits]) == [Claim.State.ADMITTED]
    waits.refresh_from_db()
    assert waits.node == "gpu-2"


@pytest.mark.django_db
@pytest.mark.parametrize("is_free", ["its pod is gone", "the agent reported an earlier run"])
def test_a_bad_gpu_closes_its_node_only_while_nobody_has_it(stage: Stage, is_free: str) -> None:
    stage.change_node("gpu-2", ready=False)
    pod = stage.pod("gpu-1", 1, run=stage.running(1).pk)
    gpus(stage, "gpu-1", bad={2}, held={2: pod})
    assert stage.running(1).node == "gpu-1"
    if is_free == "its pod is gone":
        pod.delete()  # the agent has not reported the end yet
    else:
        Gpu.objects.update(seen_at=timezone.now() - timedelta(hours=1))
    waits = stage.request(1)
    stage.admit()
    assert states([waits]) == [Claim.State.WAITING]


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_admitted_to_a_node_that_may_give_a_bad_gpu(stage: Stage, seed: int) -> None:
    """Random GPUs are bad or held: an admitted run can only get a GPU that works."""
    chance = random.Random(seed)
    stage.quota(8)
    free_and_bad = {}
    for name in ("gpu-1", "gpu-2"):
        held = {index: stage.pod(name, 1) for index in range(4) if chance.random() < 0.4}
        bad = {index for index in range(4) if chance.random() < 0.4}
        gpus(stage, name, bad=bad, held=held)
        free_and_bad[name] = bad - held.keys()
    asked = [stage.request(1) for _ in range(8)]
    stage.admit()
    for claim in Claim.objects.filter(pk__in=[one.pk for one in asked], state=Claim.State.ADMITTED):
        assert not free_and_bad[claim.node]


@pytest.mark.django_db
def test_hami_uses_the_other_cards_of_the_node(stage: Stage) -> None:
    card = {"memory_mib": 81920, "cores": 100, "slots": 10, "usable": True}
    stage.change_node("gpu-1", devices=[card | {"id": f"gpu-1-{index}"} for index in range(4)])
    hami = stage.another_pool("hami", sharing="hami", units_per_gpu=100, gpu_memory_mib=81920)
    gpus(stage, "gpu-1", bad={2})
    seen = nodes_of([hami])[hami.pk]
    [room] = [one.free.units for one in seen.healthy if one.name == "gpu-1"]
    assert room == 300
    assert seen.out.broken_units == 100


@pytest.mark.django_db
def test_a_request_for_gpus_that_no_device_plugin_offers_now_waits(stage: Stage) -> None:
    for row in stage.pool.cluster.nodes.all():
        # The kubelet has forgotten the resource; the label still shows it.
        row.allocatable = row.capacity = row.allocatable | {"nvidia.com/gpu": 0}
        row.labels |= {"nvidia.com/gpu.count": "4"}
        row.gpus_out_code = "gpu_plugin_down"
        row.save()
    waits = stage.request(2)
    stage.admit()
    waits.refresh_from_db()
    assert (waits.reason_code, waits.reason_data["out"]) == ("no_node_ready", {"unwell": 2})


@pytest.mark.django_db
def test_nodes_that_kubernetes_would_use_and_must_not_are_named(stage: Stage) -> None:
    assert not unwell_nodes(stage.pool)
    gpus(stage, "gpu-1", bad={2})
    stage.change_node("gpu-2", gpus_out_code="gpu_uvm_missing")
    cpu = stage.another_pool("cpu", resource_name="")
    assert list(unwell_nodes(stage.pool)) == ["gpu-1", "gpu-2"]
    assert not unwell_nodes(cpu)
