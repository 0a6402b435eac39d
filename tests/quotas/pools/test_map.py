"""Drawing of a node's GPUs side by side: the number of each kind is exact, the positions need not be."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.pools import fragments
from quotas.pools.gpu_map import Held, Kind, NodeRow, node_row
from quotas.pools.health import Trouble


def row(*held: Held, trouble: Trouble = Trouble.NONE, **values: Any) -> NodeRow:
    given: dict[str, Any] = {"offered": 4, "broken": 0, "units_per_gpu": 1}
    return node_row("gpu-1", trouble, held=held, **(given | values))


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
    node = row(Held(Kind.MINE, 1), Held(Kind.OTHER, 4, "another tenant"), offered=8, units_per_gpu=4)
    assert drawn(node) == [[("mine", 25)] + [("other", 25)] * 3, [("other", 25)] + [("free", 25)] * 3]


def test_more_slices_than_one_can_count_are_drawn_as_a_share() -> None:
    node = row(Held(Kind.MINE, 30), offered=100, units_per_gpu=100)
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


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (row(Held(Kind.MINE, 1), trouble=Trouble.CORDONED), "1 yours · 3 out of use"),
        (row(offered=3, broken=1), "3 free · 1 out of use"),  # it has one that it does not offer
        (row(Held(Kind.OTHER, 1), kept=2), "1 taken by others · 2 booked · 1 free"),
        (row(kept=2, trouble=Trouble.NOT_READY), "4 out of use"),
    ],
)
def test_only_units_that_can_be_given_are_free(node: NodeRow, words: str) -> None:
    assert node.words == words


def test_reclaimed_units_have_a_time_and_stay_whose_they_are() -> None:
    at = datetime(2026, 3, 5, 14, 20, tzinfo=UTC)
    node = row(Held(Kind.MINE, 1, what="exp-1", reclaimed_at=at), Held(Kind.MINE, 1, what="exp-2"))
    assert node.parts[0][1] == "1 GPU: yours, exp-1; reclaimed at 14:20"
    assert node.words == "2 yours · 2 free · 1 being reclaimed"
    assert [gpu[0].is_reclaimed for gpu in node.gpus] == [True, False, False, False]


class TestCards:
    """Nodes whose GPUs are known one by one."""

    CARDS: ClassVar = {"GPU-a": True, "GPU-b": True, "GPU-c": False}

    def row(self, *held: Held, **values: Any) -> NodeRow:
        return row(*held, offered=200, broken=100, units_per_gpu=100, cards=self.CARDS, **values)

    def test_each_is_drawn_with_what_is_on_it(self) -> None:
        node = self.row(
            Held(Kind.MINE, 60, on=(("GPU-b", 60),)),
            Held(Kind.OTHER, 60, "another tenant", on=(("GPU-a", 60),)),
        )
        assert drawn(node) == [[("other", 60), ("free", 40)], [("mine", 60), ("free", 40)], [("out", 100)]]
        assert node.words == "0.6 yours · 0.6 taken by others · 0.8 free · 1 out of use"
        assert node.parts[0][1] == "60% of a GPU: yours"

    def test_before_its_pod_says_which_it_got_it_is_on_the_fullest_that_holds_it(self) -> None:
        node = self.row(Held(Kind.OTHER, 50, on=(("GPU-b", 50),)), Held(Kind.MINE, 30))
        assert drawn(node)[1] == [("mine", 30), ("other", 50), ("free", 20)]
        node = self.row(Held(Kind.OTHER, 50, on=(("GPU-b", 50),)), Held(Kind.MINE, 140, cards=2))
        assert drawn(node)[0][0] == ("mine", 70)

    def test_no_more_than_a_card_is_drawn_on_it(self) -> None:
        node = self.row(*(Held(Kind.OTHER, 70, on=(("GPU-a", 70),)) for _ in range(2)))
        assert drawn(node)[0] == [("other", 70), ("other", 30)]

    def test_what_is_booked_is_part_of_what_is_free(self) -> None:
        node = self.row(Held(Kind.OTHER, 50, on=(("GPU-a", 50),)), kept=100)
        assert drawn(node) == [
            [("other", 50), ("booked", 50)], [("booked", 50), ("free", 50)], [("out", 100)],
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("free", "asked", "per_gpu", "words"),
    [
        ([2, 2, 0, 2], [4], 1, "Free: 6 GPUs, on 3 nodes: 2, 2 and 2. 1 request for 4 on one node waits."),
        ([3, 1], [4, 4, 2], 1, "Free: 4 GPUs, on 2 nodes: 3 and 1. 2 requests for 4 or more on one node wait."),
        ([5, 3], [7], 7, "Free: 8 slices, on 2 nodes: 5 and 3. 1 request for 7 on one node waits."),
        ([50, 70], [100], 100, "Free: 1.2 GPUs, on 2 nodes: 0.7 and 0.5. 1 request for 1 on one node waits."),
        ([1] * 9, [2], 1, "Free: 9 GPUs, on 9 nodes, with at most 1 on one. 1 request for 2 on one node waits."),
        ([2, 2], [], 1, ""),
        ([2, 2], [2], 1, ""),
        ([2, 2], [5], 1, ""),
        ([], [1], 1, ""),
    ],
)  # fmt: skip
def test_scattered_room_is_said_in_words(free: list[int], asked: list[int], per_gpu: int, words: str) -> None:
    assert fragments.told(free, asked, per_gpu) == words


@given(
    offered=st.integers(0, 24),
    per_gpu=st.sampled_from([1, 4, 7, 100]),
    held=st.lists(st.tuples(st.sampled_from([Kind.MINE, Kind.TENANT, Kind.OTHER]), st.integers(1, 9))),
)
def test_whatever_is_held_is_drawn_and_nothing_else(
    offered: int, per_gpu: int, held: list[tuple[Kind, int]]
) -> None:
    node = row(*(Held(kind, units, "x") for kind, units in held), offered=offered, units_per_gpu=per_gpu)
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
