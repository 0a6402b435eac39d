"""Two hundred launches at once by a tenant whose quota is 8: eight run, the others wait, none is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.stack import Client, Stack, until

LAUNCHES = 200
QUOTA = 8
STOPS = 3
NODES = """
nodes:
- name: gpu
  count: 3
  cpu: 64
  memory: 512Gi
  gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 4, compute: "8.0"}
"""

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def berth(tmp_path: Path) -> Iterator[Stack]:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(NODES)
    stack = Stack(tmp_path / "state", BERTH_DEVCLUSTER_PODS="played", BERTH_DEVCLUSTER_NODES=str(nodes))
    stack.start()
    yield stack
    stack.stop()


def phases(api: Client) -> Counter[str]:
    return Counter(workspace["phase"] for workspace in api.everything("workspaces/?limit=500"))


def test_eight_run_and_each_stop_starts_exactly_one(berth: Stack) -> None:
    set_quota = (
        "from quotas.models import Quota; Quota.objects.filter(tenant__slug='demo', pool__slug='a100')"
    )
    berth.manage("shell", "-c", f"{set_quota}.update(nominal_gpus={QUOTA}, borrowing_limit_gpus=0)")
    api = berth.client(berth.token("alice", "read", "workspaces"))

    def launch(number: int) -> int:
        body = {"tenant": "demo", "name": f"run-{number}", "image": "jupyter", "flavor": "a100-1"}
        return api("POST", "workspaces/", body)[0]

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(launch, range(LAUNCHES))) == {201}

    full = {"ready": QUOTA, "waiting": LAUNCHES - QUOTA}
    until("eight run", lambda: phases(api) == full, 90, pause=0.5)

    for stopped in range(1, STOPS + 1):
        ready = api("GET", "workspaces/?phase=ready&limit=1")[1]["results"][0]
        assert api("POST", f"workspaces/{ready['id']}/stop/")[0] == 202
        expected = {"ready": QUOTA, "waiting": LAUNCHES - QUOTA - stopped, "stopped": stopped}
        until(f"the next starts after stop {stopped}", lambda: phases(api) == expected, pause=0.3)  # noqa: B023

    assert len(berth.in_cluster("Pod")) == QUOTA

    # Places in the queue have no gaps. They are written a moment after each pass.
    def in_line() -> bool:
        waiting = api.everything("workspaces/?phase=waiting&limit=500")
        return sorted(w["queue"]["position"] for w in waiting) == list(range(1, len(waiting) + 1))

    until("all know their place", in_line)
