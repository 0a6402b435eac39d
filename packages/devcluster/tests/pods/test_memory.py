"""Memory limits in each way of this machine: by control groups, and watched without them."""

import asyncio
from pathlib import Path

import pytest

from helpers.shells import ended, process_pods

pytestmark = [pytest.mark.slow, process_pods]
EAT = "python -c 'x = [bytearray(2**20) for n in range(300)]; import time; time.sleep(60)'"


@pytest.mark.parametrize("control_groups", [True, False])
def test_a_container_that_outgrows_its_limit_is_oom_killed(tmp_path: Path, control_groups: bool) -> None:
    found = asyncio.run(ended(tmp_path, f"exec {EAT}", 80, control_groups=control_groups))
    assert (found.code, found.reason) == (137, "OOMKilled")


@pytest.mark.parametrize("control_groups", [True, False])
def test_a_child_that_outgrows_it_takes_the_whole_container_along(
    tmp_path: Path, control_groups: bool
) -> None:
    script = f"{EAT} & wait; sleep 60"
    found = asyncio.run(ended(tmp_path, script, 80, control_groups=control_groups))
    assert (found.code, found.reason) == (137, "OOMKilled")


@pytest.mark.parametrize("control_groups", [True, False])
def test_within_its_limit_it_ends_as_it_likes(tmp_path: Path, control_groups: bool) -> None:
    found = asyncio.run(ended(tmp_path, "sleep 1; exit 7", 200, control_groups=control_groups))
    assert (found.code, found.reason) == (7, "Error")
