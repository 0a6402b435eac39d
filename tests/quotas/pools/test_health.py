"""Nodes and GPUs of a pool that are out, why, and in words."""

from __future__ import annotations

from typing import Any

import pytest

from quotas import queries
from quotas.pools import health
from quotas.pools.health import Out, Trouble
from tests.quotas.pools.made import node, pool
from tests.shared.stage import GPU, Stage

TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("values", "trouble"),
    [
        ({}, Trouble.NONE),
        ({"ready": False, "unschedulable": True}, Trouble.NOT_READY),
        ({"unschedulable": True}, Trouble.CORDONED),
        ({"taints": [TAINT]}, Trouble.TAINTED),
        ({"taints": [TAINT | {"effect": "PreferNoSchedule"}]}, Trouble.NONE),
    ],
)
def test_a_node_takes_nothing_new_for_one_reason(values: dict[str, Any], trouble: Trouble) -> None:
    assert health.trouble_of(node(**values), pool()) == trouble


def test_a_taint_that_the_pool_tolerates_is_no_trouble() -> None:
    tolerant = pool(tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert not health.trouble_of(node(taints=[TAINT]), tolerant)


@pytest.mark.parametrize(
    ("values", "of", "broken"),
    [
        ({"capacity": {GPU: 4}}, {}, 0),
        ({"capacity": {GPU: 5}}, {}, 1),
        ({"labels": {"nvidia.com/gpu.count": "6"}}, {}, 2),
        ({"labels": {"nvidia.com/gpu.count": "2"}}, {"sharing": "time-slicing", "units_per_gpu": 4}, 4),
        # Not all GPUs need be cut.
        ({"labels": {"nvidia.com/gpu.count": "2"}}, {"sharing": "mig", "units_per_gpu": 7}, 0),
        ({"devices": [{"usable": True}, {"usable": False}]}, {"sharing": "hami", "units_per_gpu": 100}, 100),
        ({"allocatable": {}, "capacity": {}}, {}, 0),
        ({"labels": {"nvidia.com/gpu.count": "6"}}, {"resource_name": ""}, 0),  # no unit of such a pool
    ],
)
def test_what_a_node_has_and_cannot_give_is_broken(
    values: dict[str, Any], of: dict[str, Any], broken: int
) -> None:
    assert health.broken_units(node(**values), pool(**of)) == broken


def test_what_is_out_is_said_in_words() -> None:
    assert health.told(pool(), Out(tainted=2, units=8)) == {}  # kept for others, not broken
    out = Out(not_ready=2, cordoned=1, unwell=2, units=12, broken_units=5)
    assert health.words(health.told(pool(units_per_gpu=4), out)) == [
        "2 nodes are not ready.",
        "1 node is closed by an admin.",
        "2 nodes are out of use: they, or some of their GPUs, do not work.",
        "2 GPUs are broken.",
    ]


@pytest.mark.django_db
def test_a_reason_to_wait_names_what_is_out(stage: Stage) -> None:
    stage.change_node("gpu-1", ready=False)
    stage.change_node("gpu-2", capacity={GPU: 6})
    stage.running(3)
    waits = stage.request(2, by=stage.cast.carol)
    stage.admit()
    message = queries.queues_of([waits.pk])[waits.pk]["reason"]["message"]
    assert message.endswith("1 node is not ready. 2 GPUs are broken.")


@pytest.mark.django_db
def test_a_pool_shows_what_is_out(stage: Stage) -> None:
    stage.change_node("gpu-1", unschedulable=True)
    stage.change_node("gpu-2", capacity={GPU: 5})
    stage.node("gpu-3", 2, ready=False)
    [told] = queries.pools_for(stage.cast.alice)
    assert (told["nodes"], told["gpus"]["free"]) == ({"total": 3, "ready": 1}, 4)
    nodes = {"nodes_not_ready": 1, "nodes_cordoned": 1, "nodes_unwell": 0, "nodes_tainted": 0}
    assert told["out"] == nodes | {"gpus": 6, "broken_gpus": 1}
