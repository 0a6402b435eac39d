"""Judging the end of an attempt by all its pods: pure, from objects as a cluster shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.models import Job
from jobs.runs.ends import Result, end_of, first_to_blame, reason_of
from workloads.pods.status import INDEX

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


def at(seconds: int) -> str:
    return (BEGAN + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def pod(
    index: int,
    exit_code: int | None = 0,
    ended: int = 10,
    *,
    deleted: int | None = None,
    gone: int | None = None,
    saw_deletion: bool | None = None,
    reason: str = "",
    disrupted: bool = False,
    oom: bool = False,
) -> dict[str, Any]:
    """Return a pod that ended so many seconds after the beginning. `deleted`: when somebody asked it to end.

    `gone`: when its kubelet, or who deleted it after its end, deleted it without grace; `saw_deletion`: a cluster that
    counts generations of pods says whether the last status was written after a deletion.
    """
    metadata: dict[str, Any] = {
        "uid": f"uid-{index}",
        "name": f"p-{index}",
        "annotations": {INDEX: str(index)},
    }
    if deleted is not None:
        metadata |= {"deletionTimestamp": at(deleted + 30), "deletionGracePeriodSeconds": 30}
    if gone is not None:
        metadata |= {"deletionTimestamp": at(gone), "deletionGracePeriodSeconds": 0}
    status: dict[str, Any] = {"phase": "Succeeded" if exit_code == 0 else "Failed"}
    if saw_deletion is not None:
        metadata["generation"] = 2
        status["observedGeneration"] = 2 if saw_deletion else 1
    if exit_code is not None:
        word = "OOMKilled" if oom else "Completed" if exit_code == 0 else "Error"
        terminated = {"exitCode": exit_code, "finishedAt": at(ended), "reason": word}
        status["containerStatuses"] = [{"name": "job", "state": {"terminated": terminated}}]
    if reason:
        status |= {"reason": reason, "message": reason}
    if disrupted:
        status["conditions"] = [dict(DISRUPTED)]
    return {"metadata": metadata, "spec": {"nodeName": f"node-{index}"}, "status": status}


def job(nodes: int = 2, **fields: Any) -> Job:
    return Job(nodes=nodes, **fields)


def test_all_ranks_have_to_succeed() -> None:
    assert end_of(job(), [pod(0), pod(1)], None).result == Result.SUCCEEDED
    assert end_of(job(), [pod(0)], None).result == Result.AGAIN  # the other is missing
    assert end_of(job(), [pod(0), pod(1, 3)], None).result == Result.FAILED


def test_the_exit_code_is_that_of_the_first_that_failed_and_not_of_those_that_were_ended() -> None:
    end = end_of(job(), [pod(0, 143, 11, deleted=10), pod(1, 3, 10)], None)
    assert (end.result, end.code, end.exit_code) == (Result.FAILED, "rank_exit_code", 3)
    assert end.data == {"exit_code": 3, "rank": 1, "node": "node-1"}
    assert end_of(job(), [pod(0, 1, 12), pod(1, 9, 11)], None).exit_code == 9


def test_within_a_second_the_one_that_was_killed_failed_first() -> None:
    assert end_of(job(), [pod(0, 1), pod(1, 137)], None).exit_code == 137


def test_a_final_exit_code_is_the_first_ones() -> None:
    final = job(final_exit_codes=[3])
    assert end_of(final, [pod(0, 143, 11, deleted=10), pod(1, 3)], None).result == Result.FINAL
    assert end_of(final, [pod(0, 3, 12), pod(1, 4, 10)], None).result == Result.FAILED


@pytest.mark.parametrize(
    "lost",
    [
        pod(1, 137, 15, disrupted=True),
        pod(1, None, reason="NodeLost"),
        pod(1, 137, 15, deleted=10, reason="Evicted"),
    ],
)
def test_a_lost_node_or_an_eviction_is_the_cause_though_others_failed_before(lost: dict[str, Any]) -> None:
    assert end_of(job(), [pod(0, 1, 10), lost], None).result == Result.AGAIN


def test_a_pod_that_its_node_rejected_sends_all_back_to_the_queue() -> None:
    rejected = pod(1, None, reason="OutOfcpu")
    assert end_of(job(), [pod(0, 143, 11, deleted=10), rejected], None).result == Result.REQUEUE


def test_an_eviction_says_by_what_it_was() -> None:
    drained = pod(1, 143, 12, deleted=10, disrupted=True)
    drained["status"]["conditions"][0] |= {"reason": "EvictionByEvictionAPI"}
    assert end_of(job(), [pod(0, 1, 10), drained], None).data == {"reason": "EvictionByEvictionAPI"}
    deleted = pod(1, 143, 12, deleted=10)
    assert end_of(job(), [pod(0), deleted], None).data == {"reason": "Deleted"}


def test_pods_that_somebody_deleted_cost_no_retry() -> None:
    end = end_of(job(), [pod(0, 143, 12, deleted=10), pod(1, 143, 11, deleted=10)], None)
    assert (end.result, end.code) == (Result.AGAIN, "ended_from_outside")


@pytest.mark.parametrize("saw_deletion", [True, None])
@pytest.mark.parametrize("exit_code", [0, 143])
def test_a_deleted_pod_that_nothing_is_left_of_has_not_ended_by_itself(
    exit_code: int, saw_deletion: bool | None
) -> None:
    one = pod(0, exit_code, 10, gone=12, saw_deletion=saw_deletion)
    end = end_of(job(1), [one], None)
    assert (end.result, end.code, reason_of(one)) == (Result.AGAIN, "ended_from_outside", "taken_down")


@pytest.mark.parametrize(
    ("exit_code", "ended", "result"),
    [(143, 8, Result.AGAIN), (143, -20, Result.FAILED), (3, 8, Result.FAILED)],
)
def test_a_node_whose_clock_is_behind_makes_no_failure_of_a_deletion(
    exit_code: int, ended: int, result: Result
) -> None:
    assert end_of(job(1), [pod(0, exit_code, ended, deleted=10)], None).result == result


@pytest.mark.parametrize("gone", [{"gone": 12, "saw_deletion": False}, {"gone": 3610}])
def test_a_pod_that_is_deleted_after_its_end_keeps_its_end(gone: dict[str, Any]) -> None:
    assert end_of(job(1), [pod(0, 0, 10, **gone)], None).result == Result.SUCCEEDED
    assert end_of(job(1), [pod(0, 3, 10, **gone)], None).code == "exit_code"


def test_memory_that_ran_out_is_a_failure_of_its_rank() -> None:
    assert (
        end_of(job(), [pod(0, 143, 11, deleted=10), pod(1, 137, 10, oom=True)], None).code == "out_of_memory"
    )


def test_each_rank_has_a_reason_of_its_own() -> None:
    pods = [
        pod(0), pod(1, 3), pod(2, 143, 11, deleted=10), pod(3, 137, oom=True), pod(4, 137, disrupted=True)
    ]  # fmt: skip
    assert [reason_of(one) for one in pods] == [
        "succeeded", "exit_code", "taken_down", "out_of_memory", "ended_from_outside"
    ]  # fmt: skip
    running = pod(5) | {"status": {"phase": "Running"}}
    assert reason_of(running) == ""


PODS = st.builds(
    pod,
    index=st.integers(0, 7),
    exit_code=st.sampled_from([None, 0, 1, 3, 137, 143]),
    ended=st.integers(0, 20),
    deleted=st.none() | st.integers(0, 20),
    gone=st.none() | st.integers(0, 5000),
    saw_deletion=st.none() | st.booleans(),
    reason=st.sampled_from(["", "Evicted", "OutOfcpu"]),
    disrupted=st.booleans(),
)


@given(st.lists(PODS, min_size=1, max_size=8), st.randoms())
def test_the_order_of_pods_decides_nothing(pods: list[dict[str, Any]], random: Any) -> None:
    shuffled = random.sample(pods, len(pods))
    assert end_of(job(len(pods)), pods, None).result == end_of(job(len(pods)), shuffled, None).result


@given(st.lists(PODS, min_size=1, max_size=8))
def test_nothing_is_counted_if_any_pod_was_ended_by_its_node(pods: list[dict[str, Any]]) -> None:
    end = end_of(job(len(pods)), [*pods, pod(9, 137, disrupted=True)], None)
    assert end.result in (Result.AGAIN, Result.REQUEUE)
    assert first_to_blame(pods) is None or first_to_blame(pods) in pods
