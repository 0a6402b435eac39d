"""Admission and HAMi's scheduler agree exactly on what fits on the cards of a node."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clusters.nodes.hami import cards_of_node, cards_of_pod
from devcluster import gpus
from devcluster.scheduling import hami
from devcluster.scheduling.fitting import NodeState
from quotas import sharing
from quotas.models import Pool, Sharing
from quotas.pools import cards
from quotas.scheduling import Card, Room

MEMORY_MIB = 81_920
POOL = Pool(sharing=Sharing.HAMI, units_per_gpu=100, gpu_memory_mib=MEMORY_MIB)
ANNOUNCED = {
    "product": "NVIDIA-A100-SXM4-80GB", "memory_mib": MEMORY_MIB, "count": 3, "sharing": "hami", "split": 4
}  # fmt: skip


def pod_of(portion: sharing.Portion) -> dict[str, Any]:
    parts = sharing.pod(POOL, portion)
    container = {"resources": {"limits": dict(parts.resources)}}
    return {
        "metadata": {"annotations": dict(parts.annotations)},
        "spec": {"schedulerName": parts.scheduler, "containers": [container]},
    }


LAUNCH = st.tuples(
    st.sampled_from(["0.05", "0.1", "0.3", "0.5", "0.9", "1", "1.5", "2", "3"]),
    st.none() | st.sampled_from([512, 10_240, 40_960, 70_000, 100_000]),
)


@given(st.lists(LAUNCH | st.integers(0, 20), max_size=25), st.sets(st.integers(0, 2)))
def test_admission_and_hami_agree_about_every_launch(
    steps: list[tuple[str, int | None] | int], dead: set[int]
) -> None:
    annotations = gpus.annotations("n", ANNOUNCED)
    announced = json.loads(annotations[gpus.HAMI_REGISTER])
    for number in dead:
        del announced[number]["health"]
    annotations[gpus.HAMI_REGISTER] = json.dumps(announced)
    state = NodeState({"metadata": {"name": "n", "annotations": annotations}})
    devices = cards_of_node(annotations)
    for number, step in enumerate(steps):
        if isinstance(step, int):  # a pod ends
            if state.pods:
                state.pods.pop(list(state.pods)[step % len(state.pods)])
            continue
        portion = sharing.of(POOL).portion(POOL, Fraction(step[0]), step[1])
        held = [card for pod in state.pods.values() for card in cards_of_pod(pod["metadata"]["annotations"])]
        free, _displaced = cards.left(devices, held, [])
        need = (Card(portion.card_memory_mib or 0, portion.card_cores or 0),) * portion.cards
        pod = pod_of(portion)
        places_it = hami.rejection(pod, state) is None
        assert Room(cards=free).holds(Room(cards=need)) == places_it
        if places_it:
            pod["metadata"]["annotations"] |= hami.allocation(pod, state)
            state.pods[str(number)] = pod
