"""Kill parts of Berth at every moment of every operation: `moments` is the table, `killing` the method.

`make test-slow` runs a sample of the table, `make test-long` the rest of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.proof import invariants
from tests.proof.killing import Ground, cut_power, ground, strike
from tests.proof.moments import PARTS, Group, Part, groups, power_loss
from tests.sampling import rare, sampled

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]

KILLED: list[tuple[Part, ...]] = [*((part,) for part in PARTS), PARTS]


MATRIX = {
    f"{'+'.join(killed)}: {' + '.join(map(str, group))}": (killed, group)
    for killed in KILLED
    for group in groups(*killed)
}


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    # Disks that are made when they are asked for, before a pod is.
    with ground(tmp_path_factory.mktemp("kill"), BERTH_DISK_CLASS="net-shared") as berth:
        yield berth


@pytest.mark.parametrize(("killed", "group"), sampled(MATRIX, every=16))
def test_all_comes_right(
    killed: tuple[Part, ...], group: Group, berth: Ground, found: Callable[[str, str], None]
) -> None:
    strike(berth, group, found, *killed)


def test_all_comes_right_after_a_power_loss(berth: Ground, found: Callable[[str, str], None]) -> None:
    cut_power(berth, power_loss(), found)


@pytest.mark.parametrize("_killed", ["a sample", rare("all")])
def test_in_the_end_nothing_is_left_over(berth: Ground, _killed: str) -> None:
    invariants.hold(berth.stack, 60)
