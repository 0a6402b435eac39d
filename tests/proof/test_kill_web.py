"""The web process is killed at every moment of every operation: `moments` is the table, `killing` how it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.proof import invariants
from tests.proof.killing import Ground, ground, strike
from tests.proof.moments import Group, groups

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground(tmp_path_factory.mktemp("kill-web")) as berth:
        yield berth


@pytest.mark.parametrize("group", groups("web"), ids=lambda group: " + ".join(map(str, group)))
def test_all_comes_right(group: Group, berth: Ground, found: Callable[[str, str], None]) -> None:
    strike(berth, group, found, "web")


def test_in_the_end_nothing_is_left_over(berth: Ground) -> None:
    invariants.hold(berth.stack, 60)
