"""Leases on volumes: no two runs that exclude each other, in the order of the queue, whatever else is free."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.scheduling import Lease, PoolState, Waiting, decide, plan
from tests.quotas.scheduling import values

DATA, OTHER = uuid4(), uuid4()


def lease(holder: UUID, *, writes: bool = False, volume: UUID = DATA, is_exclusive: bool = False) -> Lease:
    return Lease(volume, "data", holder, f"h-{holder.hex[:4]}", writes, is_exclusive)


def asking(place: int, *leases: dict[str, object]) -> Waiting:
    holder = uuid4()
    claim = values.asks(1, place=place)
    return replace(claim, leases=tuple(lease(holder, **one) for one in leases))  # type: ignore[arg-type]


def state(*claims: Waiting, held: tuple[Lease, ...] = ()) -> PoolState:
    return replace(values.pool([values.node(of=16)], *claims), leased=held)


def started(found: PoolState) -> set[UUID]:
    return {one.claim for one in decide(found).admitted}


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ({}, {}, True),
        ({"writes": True}, {}, False),
        ({}, {"writes": True}, False),
        ({"writes": True}, {"writes": True}, False),
        ({"is_exclusive": True}, {"is_exclusive": True}, False),
        ({"writes": True}, {"writes": True, "volume": OTHER}, True),
    ],
)
def test_a_writer_excludes_all_and_readers_share(
    first: dict[str, object], second: dict[str, object], together: bool
) -> None:
    one, other = asking(1, first), asking(2, second)
    assert (started(state(one, other)) == {one.claim, other.claim}) is together
    assert one.claim in started(state(one, other))


def test_who_waits_is_told_for_whom_and_holds_no_gpu() -> None:
    claim = asking(1, {"writes": True})
    found = state(claim, held=(lease(uuid4()),))
    [waits] = decide(found).waits
    assert (waits.reason.code, waits.reason.data["volume"]) == ("volume_in_use", "data")
    assert plan(found) == {claim.claim: None}
    other = asking(2)
    assert started(state(claim, other, held=found.leased)) == {other.claim}


def test_a_node_that_still_has_the_volume_attached_keeps_everybody_out() -> None:
    claim = asking(1, {})
    [waits] = decide(state(claim, held=(replace(lease(uuid4()), nodes=("gpu-1",)),))).waits
    assert (waits.reason.code, waits.reason.data) == (
        "volume_still_attached", {"volume": "data", "on": ["gpu-1"]}
    )  # fmt: skip


def test_readers_that_come_later_do_not_keep_a_writer_out() -> None:
    writer, reader = asking(1, {"writes": True}), asking(2, {})
    assert started(state(writer, reader, held=(lease(uuid4()),))) == set()


MODES = st.fixed_dictionaries(
    {"writes": st.booleans(), "is_exclusive": st.booleans(), "volume": st.sampled_from([DATA, OTHER])}
)


@given(
    st.lists(st.lists(MODES, max_size=2, unique_by=lambda mode: mode["volume"]), max_size=8),
    st.lists(MODES, max_size=2),
)
def test_whatever_is_asked_no_two_that_exclude_each_other_run(
    asked: list[list[dict[str, object]]], running: list[dict[str, object]]
) -> None:
    held = tuple(lease(uuid4(), **one) for one in running)  # type: ignore[arg-type]
    claims = [asking(place, *leases) for place, leases in enumerate(asked, 1)]
    begun = started(state(*claims, held=held))
    new = [one for claim in claims if claim.claim in begun for one in claim.leases]
    assert not any(one.excludes(other) for one in new for other in (*new, *held))
