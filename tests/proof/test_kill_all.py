"""Web process, worker and watcher are killed at once, at every moment of every operation: see `moments`, `killing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.proof import invariants
from tests.proof.killing import Ground, cut_power, ground, strike
from tests.proof.moments import PARTS, Group, groups, power_loss

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground(tmp_path_factory.mktemp("kill-all")) as berth:
        yield berth


@pytest.mark.parametrize("group", groups(*PARTS), ids=lambda group: " + ".join(map(str, group)))
def test_all_comes_right(group: Group, berth: Ground, found: Callable[[str, str], None]) -> None:
    strike(berth, group, found, *PARTS)


def test_all_comes_right_after_a_power_loss(berth: Ground, found: Callable[[str, str], None]) -> None:
    cut_power(berth, power_loss(), found)


def test_in_the_end_nothing_is_left_over(berth: Ground) -> None:
    invariants.hold(berth.stack, 60)
