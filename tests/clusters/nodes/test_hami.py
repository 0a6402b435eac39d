"""Tests that HAMi's annotations are read in both forms, and that unreadable ones hand out no card."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clusters.nodes import hami
from clusters.nodes.inventory import node_values, usage_values

CARD = {"id": "GPU-a", "memory_mib": 81_920, "cores": 100, "slots": 10, "usable": True}
OLD = "GPU-a,10,81920,100,NVIDIA-A100,0,true:GPU-b,10,81920,100,NVIDIA-A100,1,false:"
NEWER = (
    "GPU-a,10,81920,100,NVIDIA-A100,0,true,0,hami-core:GPU-b,10,81920,100,NVIDIA-A100,1,false,1,hami-core:"
)
# As Go writes it: zero and false are left out.
JSON = json.dumps(
    [
        {"id": "GPU-a", "count": 10, "devmem": 81_920, "devcore": 100, "type": "NVIDIA-A100", "health": True},
        {"id": "GPU-b", "index": 1, "count": 10, "devmem": 81_920, "devcore": 100, "type": "NVIDIA-A100"},
    ]
)


@pytest.mark.parametrize("register", [OLD, NEWER, JSON])
def test_a_nodes_cards_are_read_in_every_form(register: str) -> None:
    cards = hami.cards_of_node({hami.REGISTER: register})
    assert cards == [CARD, CARD | {"id": "GPU-b", "usable": False}]


def test_a_card_that_an_admin_cordoned_is_not_usable() -> None:
    (first, _second) = hami.cards_of_node({hami.REGISTER: JSON, hami.CORDON: " GPU-a, GPU-x"})
    assert first == CARD | {"usable": False}


@pytest.mark.parametrize(
    "register",
    [
        "",
        "[",
        "[1]",
        "[{}]",
        "null",
        "GPU-a,10:",
        "GPU-a,ten,81920,100,A100,0,true:",
        '[{"id": "a", "count": "x"}]',
        '[{"id": "a", "devmem": 1e999}]',
        '[{"id": "a\\u0000", "devmem": 1, "devcore": 1}]',
        "GPU-\0,10,81920,100,A100,0,true:",
        "[" * 100_000,
    ],
    ids=range(12),
)
def test_what_cannot_be_read_is_as_if_it_were_not_there(register: str) -> None:
    assert hami.cards_of_node({hami.REGISTER: register}) == []


def test_a_node_that_hami_gave_up_has_no_cards() -> None:
    gone = {hami.REGISTER: JSON, hami.HANDSHAKE: "Deleted_2026.01.01 00:00:00"}
    assert hami.cards_of_node(gone) == []
    alive = gone | {hami.HANDSHAKE: "Requesting_2026.01.01 00:00:00"}
    assert len(hami.cards_of_node(alive)) == 2


def test_a_pods_cards_are_read_over_all_its_containers() -> None:
    text = "GPU-a,NVIDIA,20480,50:GPU-b,NVIDIA,20480,50:;;GPU-a,NVIDIA,1024,0:;"
    assert hami.cards_of_pod({hami.ALLOCATED: text}) == [
        {"id": "GPU-a", "memory_mib": 20_480, "cores": 50},
        {"id": "GPU-b", "memory_mib": 20_480, "cores": 50},
        {"id": "GPU-a", "memory_mib": 1024, "cores": 0},
    ]


@pytest.mark.parametrize(
    "allocated", ["", "nonsense,x:;", "GPU-\0,NVIDIA,1,1", f"GPU-a,NVIDIA,{'9' * 5000},1", "GPU-a,NVIDIA,1,٣"]
)
def test_whoever_writes_nonsense_on_a_pod_of_theirs_gives_it_no_card(allocated: str) -> None:
    assert hami.cards_of_pod({hami.ALLOCATED: allocated}) == []


def test_both_stand_in_the_rows_and_the_handshakes_clock_does_not_make_a_node_differ() -> None:
    def node(handshake: str) -> dict[str, Any]:
        annotations = {hami.REGISTER: JSON, hami.HANDSHAKE: handshake}
        return {"metadata": {"name": "n", "annotations": annotations}}

    assert node_values(node("Requesting_1")) == node_values(node("Reported_2"))
    assert node_values(node("Requesting_1")).devices[0] == CARD
    pod = {
        "metadata": {
            "uid": "u", "namespace": "x", "name": "p", "annotations": {hami.ALLOCATED: "GPU-a,NVIDIA,1,2:;"}
        },
        "spec": {"nodeName": "n"},
    }  # fmt: skip
    values = usage_values(pod, "installation")
    assert values is not None
    assert values.devices == [{"id": "GPU-a", "memory_mib": 1, "cores": 2}]
