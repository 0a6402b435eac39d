"""What is on a node becomes GPUs side by side: how many of each kind is true, whatever lies where."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.gpu_map import Held, Kind, NodeRow, node_row
from quotas.health import Trouble


def row(
    *held: Held, offered: int = 4, broken: int = 0, per_gpu: int = 1, trouble: Trouble = Trouble.NONE
) -> NodeRow:
    return node_row("gpu-1", trouble, offered=offered, broken=broken, held=held, units_per_gpu=per_gpu)


def drawn(node: NodeRow) -> list[list[tuple[str, float]]]:
    return [[(str(part.kind), round(part.width)) for part in gpu] for gpu in node.gpus]


def test_an_empty_node_is_free_gpus() -> None:
    assert drawn(row()) == [[("free", 100)]] * 4
    assert row().words == "4 free"


def test_ones_own_come_first_and_what_is_free_last() -> None:
    node = row(Held(Kind.OTHER, 1, "another tenant"), Held(Kind.MINE, 2, what="exp-1"))
    assert [gpu[0][0] for gpu in drawn(node)] == ["mine", "mine", "other", "free"]
    assert node.words == "2 yours · 1 taken by others · 1 free"


def test_a_shared_gpu_is_cut_into_its_slices() -> None:
    node = row(Held(Kind.MINE, 1), Held(Kind.OTHER, 4, "another tenant"), offered=8, per_gpu=4)
    assert drawn(node) == [[("mine", 25)] + [("other", 25)] * 3, [("other", 25)] + [("free", 25)] * 3]


def test_more_slices_than_one_can_count_are_drawn_as_a_share() -> None:
    node = row(Held(Kind.MINE, 30), offered=100, per_gpu=100)
    assert drawn(node) == [[("mine", 30), ("free", 70)]]


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (Held(Kind.MINE, 1, "bob of Demo", "exp-1"), "1 GPU: yours, exp-1"),
        (Held(Kind.TENANT, 2, "alice of Demo", "exp-2"), "2 GPUs: alice of Demo, exp-2"),
        (Held(Kind.OTHER, 1, "another tenant"), "1 GPU: another tenant"),
        (Held(Kind.FOREIGN, 1, "a program outside Berth"), "1 GPU: a program outside Berth"),
    ],
)
def test_each_part_is_said_in_words(held: Held, words: str) -> None:
    assert row(held).parts[0][1] == words


def test_where_nothing_new_may_go_nothing_is_free() -> None:
    node = row(Held(Kind.MINE, 1), trouble=Trouble.CORDONED)
    assert node.words == "1 yours · 3 out of use"


def test_a_gpu_that_the_node_has_and_does_not_offer_is_out_of_use() -> None:
    assert row(offered=3, broken=1).words == "3 free · 1 out of use"


@given(
    offered=st.integers(0, 24),
    per_gpu=st.sampled_from([1, 4, 7, 100]),
    held=st.lists(st.tuples(st.sampled_from([Kind.MINE, Kind.TENANT, Kind.OTHER]), st.integers(1, 9))),
)
def test_whatever_is_held_is_drawn_and_nothing_else(
    offered: int, per_gpu: int, held: list[tuple[Kind, int]]
) -> None:
    node = row(*(Held(kind, units, "x") for kind, units in held), offered=offered, per_gpu=per_gpu)
    wanted: dict[Any, float] = dict.fromkeys(Kind, 0)
    for kind, units in held:
        wanted[kind] += units
    wanted[Kind.FREE] = max(offered - sum(units for _kind, units in held), 0)
    seen: dict[Any, float] = dict.fromkeys(Kind, 0)
    for gpu in node.gpus:
        assert sum(part.width for part in gpu) < 100.001
        for part in gpu:
            seen[part.kind] += part.width * per_gpu / 100
    assert {kind: round(units, 6) for kind, units in seen.items()} == wanted
