"""Jobs on two nodes of real processes on the trial cluster: a ring of ranks, a lost rank, a lost node, strangers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.jobs.asking import comes_to, submit
from tests.e2e.jobs.ring import expected
from tests.e2e.stack import Client, Stack, running, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

RING = (Path(__file__).parent / "ring.py").read_text()
WORLD = 4
# Each node of the pool has four GPUs, so two pods of three come to two nodes.
ON_TWO_NODES = {
    "flavor": None,
    "pool": "a100",
    "gpus": 3,
    "cpu": 1,
    "memory_mib": 1024,
    "distributed": {"nodes": 2, "processes_per_node": 2, "framework": "ranks"},
}
MEETS = """
import os, pathlib, socket, time
door = socket.create_server(("", int(os.environ["MASTER_PORT"])))
if os.environ["RANK"] == "1":
    socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 60)
    pathlib.Path("met").write_text("met")
time.sleep(600)
"""
TRIES = "import socket, sys; s = socket.socket(); s.settimeout(5); sys.exit(s.connect_ex((sys.argv[1], 29500)) == 0)"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running("gangs") as found:
        yield found


@pytest.fixture(scope="module")
def alice(stack: Stack) -> Client:
    return stack.client(stack.token("alice", "read", "jobs", "volumes"))


def train(alice: Client, result: str, retries: int = 1, **env: str) -> str:
    env = {"RESULT": result, **env}
    return submit(alice, command=["python3", "-c", RING], env=env, retries=retries, **ON_TWO_NODES)


def has_result(alice: Client, result: str) -> None:
    """Look from another job at what the training left in the home."""
    check = f'test "$(cat {result})" = {expected(WORLD)}'
    comes_to(alice, submit(alice, command=["sh", "-c", check], retries=0), "succeeded")


@pytest.mark.long
def test_a_ring_that_loses_a_rank_comes_to_the_same_result(alice: Client) -> None:
    undisturbed = comes_to(alice, train(alice, "undisturbed"), "succeeded", 180)
    (only,) = undisturbed["attempts"]
    assert len({rank["node"] for rank in only["ranks"]}) == 2
    has_result(alice, "undisturbed")
    job = train(alice, "disturbed", LOSES="3")
    done = comes_to(alice, job, "succeeded", 180)
    first, second = done["attempts"]
    # The other node's ranks miss the one that was killed: theirs may be the container that ends first
    assert (first["reason"], first["counted"]) == ("rank_exit_code", True)
    assert first["exit_code"] in {rank["exit_code"] for rank in first["ranks"]} <= {1, 137}
    assert [rank["reason"] for rank in second["ranks"]] == ["succeeded", "succeeded"]
    has_result(alice, "disturbed")


@pytest.mark.long
def test_a_lost_node_costs_no_retry(stack: Stack, alice: Client) -> None:
    job = train(alice, "after-a-loss", retries=0, PAUSE="1")
    running_now = comes_to(alice, job, "running", 180)
    lost = running_now["attempts"][0]["ranks"][1]["node"]
    fault = stack.fault(node=lost, state="off")
    until("its other rank gave up", lambda: ended(alice, job, 0), 120)
    stack.end_faults(fault)
    done = comes_to(alice, job, "succeeded", 240)
    assert [one["counted"] for one in done["attempts"]] == [False, False]
    has_result(alice, "after-a-loss")


def ended(alice: Client, job: str, rank: int) -> bool:
    attempts = alice("GET", f"jobs/{job}/")[1]["attempts"]
    return bool(attempts[0]["ranks"][rank]["reason"])


@pytest.mark.long
def test_pods_of_a_job_reach_each_other_and_nobody_else_reaches_them(stack: Stack, alice: Client) -> None:
    alone = ON_TWO_NODES | {"distributed": {"nodes": 2, "processes_per_node": 1, "framework": "ranks"}}
    job = submit(alice, command=["python3", "-c", MEETS], **alone)
    comes_to(alice, job, "running", 180)
    found = ["sh", "-c", "until test -e met; do sleep 1; done"]
    comes_to(alice, submit(alice, command=found, retries=0), "succeeded")
    pods: list[dict[str, Any]] = stack.in_cluster("Pod", **{"berth.dev/job": job})
    assert len(pods) == 2
    carol = stack.client(stack.token("carol", "read", "jobs", "volumes"))
    for person, tenant in ((alice, "demo"), (carol, "second")):
        for pod in pods:
            tries = ["python3", "-c", TRIES, pod["status"]["podIP"]]
            comes_to(person, submit(person, tenant=tenant, command=tries, retries=0), "succeeded")
    assert alice("DELETE", f"jobs/{job}/")[0] == 202
    until(
        "its network is gone",
        lambda: not any(stack.in_cluster(k, **{"berth.dev/job": job}) for k in ("Service", "NetworkPolicy")),
        60,
    )
