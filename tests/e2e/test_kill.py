"""A part killed in the middle of a launch delays it, and loses nothing: three cases of the matrix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import Client, Stack, until

STEPS = [
    "request",
    "admission",
    "disk",
    "container",
    "scheduled",
    "image",
    "mounts",
    "started",
    "endpoint",
    "ready",
]
# A slow image holds the launch in its middle long enough to be killed there.
NODES = """
nodes:
- name: gpu
  count: 2
  cpu: 64
  memory: 512Gi
  gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 4, compute: "8.0"}
images:
  berth.local/jupyter:1: {pull_seconds: 2}
"""

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("kill")
    nodes = folder / "nodes.yaml"
    nodes.write_text(NODES)
    stack = Stack(folder / "state", BERTH_DEVCLUSTER_PODS="played", BERTH_DEVCLUSTER_NODES=str(nodes))
    stack.start()
    yield stack
    stack.stop()


@pytest.fixture(scope="module")
def api(berth: Stack) -> Client:
    return berth.client(berth.token("alice", "read", "workspaces"))


@pytest.mark.parametrize("part", ["worker", "watcher", "web"])
def test_a_launch_survives_the_death_of(part: str, berth: Stack, api: Client) -> None:
    body = {"tenant": "demo", "name": f"killed-{part}", "image": "jupyter", "flavor": "a100-1"}
    status, workspace = api("POST", "workspaces/", body)
    assert status == 201
    path = f"workspaces/{workspace['id']}/"

    berth.kill(part)
    until(f"ready again after the {part} was killed", berth.is_ready, 30)

    def now() -> dict[str, Any]:
        return api("GET", path)[1]

    until("the workspace is ready", lambda: now()["phase"] == "ready", 60)
    told = [e["step"] for e in api.everything(f"{path}events/") if e["level"] == "info" and e["step"]]
    assert told == STEPS
    pools = {pool["slug"]: pool for pool in api.everything("pools/")}
    assert pools["a100"]["gpus"]["mine"] == 1

    assert api("DELETE", f"{path}?delete_disk=true")[0] == 202
    until(
        "all is given back",
        lambda: {p["slug"]: p for p in api.everything("pools/")}["a100"]["gpus"]["mine"] == 0,
    )
