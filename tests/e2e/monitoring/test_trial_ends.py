"""Real programs on the trial cluster that fail, run out of memory, or lose their namespace: records stay whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clusters.labels import MANAGED_BY
from tests.e2e.jobs.asking import comes_to, submit
from tests.e2e.scene import Reader
from tests.e2e.stack import PASSWORD, Client, Stack, running, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

GROWS = "kept = []\nprint('loading', flush=True)\nwhile True: kept.append(bytearray(32 * 2**20))"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running("ends") as found:
        yield found


@pytest.fixture(scope="module")
def alice(stack: Stack) -> Client:
    return stack.client(stack.token("alice", "read", "jobs"))


def record_of(alice: Client, job: str) -> dict[str, Any]:
    """Return the whole record of the job's newest attempt that has one."""

    def found() -> Any:
        _status, page = alice("GET", f"post-mortems/?job={job}&limit=1")
        ids = [one["id"] for one in page["results"] if one["is_complete"]]
        return ids and alice("GET", f"post-mortems/{ids[0]}/")[1]

    return dict(until("the record is complete", found, 180, 1.0))


@pytest.mark.long
def test_records_of_real_ends_outlive_their_namespace(stack: Stack, alice: Client) -> None:
    program = ["sh", "-c", "echo about to fail; sleep 10; exit 1"]  # for the agent, which tells of its GPU
    failing = submit(alice, name="fails", command=program, retries=0, flavor="a100-1")
    small = {"flavor": None, "pool": "cpu", "cpu": 0.5, "memory_mib": 256}
    hungry = submit(alice, name="grows", command=["python3", "-c", GROWS], retries=0, **small)
    comes_to(alice, failing, "failed")
    failed = comes_to(alice, hungry, "failed")
    records = {job: record_of(alice, job) for job in (failing, hungry)}
    exit_1, oom = records.values()
    assert (exit_1["verdict"]["code"], exit_1["exit_code"]) == ("program_exit", 1)
    assert [one["text"] for one in exit_1["log"]] == ["about to fail"]
    assert (oom["verdict"]["code"], oom["ends"][0]["reason"]) == ("out_of_memory", "OOMKilled")
    assert failed["failure"]["post_mortem"] == failed["attempts"][0]["post_mortem"] == oom["id"]
    for record in records.values():
        assert record["node_then"]["ready"]
        assert {"Scheduled", "Started"} <= {one["reason"] for one in record["events"]}
        assert {one["kind"] for one in record["volumes"]} == {"home"}
    sleeping = submit(alice, name="sleeps", command=["sleep", "1000"], retries=0)
    comes_to(alice, sleeping, "running")
    stack.transport().request("DELETE", "/api/v1/namespaces/berth-demo")
    lost = record_of(alice, sleeping)
    assert (lost["verdict"]["code"], lost["namespace_deleted_at"] is None) == ("namespace_deleted", False)
    (attempt,) = [
        one for one in alice("GET", f"jobs/{sleeping}/")[1]["attempts"] if one["post_mortem"] == lost["id"]
    ]
    assert (lost["happened"], attempt["counted"]) == ("interrupted", False)
    assert alice("POST", f"jobs/{sleeping}/cancel/")[0] == 202  # it would be tried again
    comes_to(alice, sleeping, "cancelled")
    nothing_is_left(stack)
    reader = Reader(stack.address, "alice", PASSWORD)
    for record in records.values():
        again = alice("GET", f"post-mortems/{record['id']}/")[1]
        assert again | {"alike": []} == record | {"alike": []}  # the third is like these
        page = reader.text(f"/post-mortems/{record['id']}/")
        told = [
            record["node"],
            *record["gpus"],
            record["verdict"]["message"],
            f"Exit code {record['exit_code']}",
        ]
        told += [one["text"] for one in record["log"]] + [one["reason"] for one in record["events"]]
        assert not [one for one in told if one not in page]
    assert len(exit_1["gpus"]) == 1


def nothing_is_left(stack: Stack) -> None:
    """Delete the namespace that a next attempt may have made, and take all nodes out of the cluster."""
    if any(one["metadata"]["name"] == "berth-demo" for one in stack.in_cluster("Namespace")):
        stack.transport().request("DELETE", "/api/v1/namespaces/berth-demo")
    for node in stack.rows("SELECT name FROM clusters_node"):
        stack.fault(node=node["name"], state="deleted")
    until("no node is left", lambda: not stack.rows("SELECT 1 FROM clusters_node"), 60)
    until("no pod is left", lambda: not stack.in_cluster("Pod", **{MANAGED_BY: "berth"}), 120)
