"""Order in which workspaces are looked at, by a clock of the test."""

from __future__ import annotations

import threading
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.runs.lanes import OLDEST_FIRST_EVERY, PACE_SECONDS, Lane, Lanes

ONE, TWO, THREE = (UUID(int=number) for number in range(1, 4))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lanes(clock: Clock) -> Lanes:
    return Lanes(clock)


def taken(lanes: Lanes, most: int = 1) -> list[UUID]:
    return lanes.take(most, timeout_seconds=0)


def test_what_a_person_waits_for_comes_first(lanes: Lanes) -> None:
    lanes.add(ONE, Lane.CAN_WAIT)
    lanes.add(TWO, Lane.GOES_ON)
    lanes.add(THREE, Lane.PERSON)
    assert [taken(lanes), taken(lanes), taken(lanes), taken(lanes)] == [[THREE], [TWO], [ONE], []]


def test_each_waits_once_in_the_best_lane_that_it_was_added_to(lanes: Lanes) -> None:
    lanes.add_all([ONE, TWO, ONE], Lane.CAN_WAIT)
    lanes.add(TWO, Lane.PERSON)
    lanes.add(TWO, Lane.CAN_WAIT)
    assert lanes.waiting() == [1, 0, 1]
    assert taken(lanes, 5) == [TWO]


def test_no_lane_starves(lanes: Lanes, clock: Clock) -> None:
    lanes.add(ONE, Lane.CAN_WAIT)
    for number in range(OLDEST_FIRST_EVERY):
        clock.now += 1
        lanes.add(UUID(int=10 + number), Lane.PERSON)
    order = [taken(lanes)[0] for _ in range(OLDEST_FIRST_EVERY)]
    assert order.index(ONE) == OLDEST_FIRST_EVERY - 1


def test_what_is_in_hand_is_not_taken_twice_and_comes_again_if_it_was_added_meanwhile(lanes: Lanes) -> None:
    lanes.add(ONE, Lane.PERSON)
    assert taken(lanes) == [ONE]
    lanes.add(ONE, Lane.CAN_WAIT)
    lanes.add(ONE, Lane.GOES_ON)
    assert taken(lanes) == []
    lanes.done([ONE])
    assert lanes.waiting() == [0, 1, 0]
    assert taken(lanes) == [ONE]
    lanes.done([ONE])
    assert taken(lanes) == []


def test_noise_costs_one_look_in_its_pause(lanes: Lanes, clock: Clock) -> None:
    looks = 0
    for _ in range(100):
        lanes.add_noise(ONE, Lane.GOES_ON)
        if taken(lanes):
            looks += 1
            lanes.done([ONE])
        clock.now += PACE_SECONDS / 10
    assert looks in (10, 11)


def test_noise_during_a_look_is_looked_at_later(lanes: Lanes, clock: Clock) -> None:
    lanes.add(ONE, Lane.PERSON)
    assert taken(lanes) == [ONE]
    lanes.add_noise(ONE, Lane.GOES_ON)
    lanes.done([ONE])
    assert taken(lanes) == []
    clock.now += PACE_SECONDS
    assert taken(lanes) == [ONE]


def test_a_change_that_matters_does_not_wait_for_the_pause(lanes: Lanes) -> None:
    lanes.add(ONE, Lane.PERSON)
    assert taken(lanes) == [ONE]
    lanes.done([ONE])
    lanes.add_noise(ONE, Lane.GOES_ON)
    assert taken(lanes) == []
    lanes.add(ONE, Lane.GOES_ON)
    assert taken(lanes) == [ONE]


def test_closing_lets_go_of_those_who_wait(lanes: Lanes) -> None:
    found: list[list[UUID]] = []
    waiting = threading.Thread(target=lambda: found.append(Lanes.take(lanes, 1, timeout_seconds=600)))
    waiting.start()
    lanes.close()
    waiting.join(30)
    assert found == [[]]


@given(st.lists(st.tuples(st.sampled_from(["add", "noise", "take", "done", "wait"]), st.integers(0, 4))))
def test_nothing_is_lost_and_nothing_taken_twice(steps: list[tuple[str, int]]) -> None:
    clock = Clock()
    lanes = Lanes(clock)
    names = [uuid4() for _ in range(5)]
    asked: set[UUID] = set()  # since it was last taken
    in_hand: set[UUID] = set()

    def take() -> None:
        for one in taken(lanes, 2):
            assert one not in in_hand
            assert one in asked
            asked.discard(one)
            in_hand.add(one)

    for what, number in steps:
        name = names[number]
        if what == "add":
            lanes.add(name, Lane(number % 3))
            asked.add(name)
        elif what == "noise":
            lanes.add_noise(name, Lane(number % 3))
            asked.add(name)
        elif what == "take":
            take()
        elif what == "done":
            lanes.done(in_hand)
            in_hand.clear()
        else:
            clock.now += number
    lanes.done(in_hand)
    in_hand.clear()
    for _ in range(12):
        clock.now += PACE_SECONDS
        take()
        lanes.done(in_hand)
        in_hand.clear()
    assert not asked
