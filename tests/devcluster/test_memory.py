"""Memory limits in each way of this machine: by control groups, and watched without them."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from devcluster.kubelet.process import ProcessRuntime
from devcluster.kubelet.runtime import ContainerPlan, Exit
from devcluster.network import SharedNetwork
from devcluster.nodes import Image
from tests.devcluster.cluster import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not ROOT or shutil.which("unshare") is None, reason="process pods with disks need root and util-linux"
    ),
]
EAT = "python -c 'x = [bytearray(2**20) for n in range(300)]; import time; time.sleep(60)'"
MIB = 2**20


async def ended(state: Path, script: str, limit_mib: int, *, control_groups: bool) -> Exit:
    (state / "roots").mkdir()
    plan = ContainerPlan(
        pod_uid="11111111-2222-3333-4444-555555555555",
        name="main",
        hostname="p",
        address="127.16.0.5",
        image=Image(root=Path(sys.prefix)),
        command=["sh", "-c", script],
        env={},
        working_dir="",
        uid=1000,
        gid=1000,
        groups=[],
        host_uid=712345678,
        memory_bytes=limit_mib * MIB,
        log=state / "log",
    )
    runtime = ProcessRuntime(state, SharedNetwork(), control_groups=control_groups)
    container = await runtime.start(plan)
    try:
        return await asyncio.wait_for(container.wait(), 30)
    finally:
        await runtime.close()


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
