"""Judge how an attempt has ended, by all its pods and its Job. Pure: from raw objects to plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from clusters.pods.ends import end_proven
from jobs.models import Job
from workloads.pods.status import (
    DELETED,
    Object,
    container_status,
    end_reason,
    evicted_why,
    has_started,
    index_of,
)
from workloads.pods.troubles import explain_trouble, rejected

OUT_OF_TIME = "DeadlineExceeded"
LONGEST_TAIL = 4096
BY_A_SIGNAL = 128  # exit codes above it
ASKED_TO_END = BY_A_SIGNAL + 15  # SIGTERM: what a kubelet sends first
# A node's clock may be behind the API server's, and the end of a deleted pod seem to come before its deletion.
CLOCKS_DIFFER = timedelta(seconds=15)
NEVER = "~"  # after every time
# A kubelet has cleaned up after a pod so long after its end. Its Job's deletion by time comes an hour after the end.
LONGEST_CLEANING = timedelta(minutes=10)


class Result(Enum):
    """Consequence for a part when its attempt has ended by itself."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # counts against its retries
    FINAL = "final"  # no retry helps
    AGAIN = "again"  # ended from outside: nothing is counted
    REQUEUE = "requeue"  # it never ran: its claim goes back to the queue


@dataclass(frozen=True)
class End:
    result: Result
    code: str
    exit_code: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


def is_running(pod: Object) -> bool:
    return has_started(pod) and not end_proven(pod)


def is_over(kept: Object | None) -> bool:
    """Return True if the cluster makes no more pods of an attempt's Job: it is over, or being deleted."""
    if kept is None or kept["metadata"].get("deletionTimestamp"):
        return True
    conditions = (kept.get("status") or {}).get("conditions") or []
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions)


def is_suspended(kept: Object) -> bool:
    """Return True for a Job that somebody suspended by hand: it ends its pods, and makes none until it is resumed."""
    return bool(kept["spec"].get("suspend"))


def ran_out_of_time(kept: Object | None) -> bool:
    conditions = ((kept or {}).get("status") or {}).get("conditions") or []
    return any(one["type"] == "Failed" and one.get("reason") == OUT_OF_TIME for one in conditions)


def is_asked(job: Job, kept: Object | None) -> bool:
    """Return True if the person asked for the time that is over. Else the queue was promised it."""
    seconds = ((kept or {}).get("spec") or {}).get("activeDeadlineSeconds", 0)
    return job.max_runtime_minutes is not None and seconds >= job.max_runtime_minutes * 60


def end_of(job: Job, pods: Sequence[Object], kept: Object | None) -> End:
    """Judge an attempt by its pods, which have all ended, and by its Job as the cluster has it."""
    if len(pods) >= job.nodes and all(has_succeeded(pod) for pod in pods):
        return End(Result.SUCCEEDED, "succeeded", 0)
    if ran_out_of_time(kept):
        return End(Result.FINAL, "ran_too_long") if is_asked(job, kept) else End(Result.AGAIN, "gave_way")
    pod = first_to_blame(pods)
    if pod is None:
        return End(Result.AGAIN, "ended_from_outside", data={"reason": "Deleted"})
    reason, code = why_ended(pod), terminated(pod).get("exitCode")
    if rejected(pod):
        why = explain_trouble("container", f"{reason}: {pod['status'].get('message', '')}").diagnosis
        return End(Result.REQUEUE, why.code, data=why.data)
    if ended_by_its_node(pod) or not ended_by_itself(pod):
        return End(Result.AGAIN, "ended_from_outside", code, {"reason": reason})
    if code in job.final_exit_codes:
        return End(Result.FINAL, "exit_code_is_final", code, {"exit_code": code})
    if reason == "OOMKilled":
        return End(Result.FAILED, "out_of_memory", code)
    if job.nodes > 1:
        where = {"rank": index_of(pod), "node": pod["spec"].get("nodeName", "")}
        return End(Result.FAILED, "rank_exit_code", code, {"exit_code": code, **where})
    return End(Result.FAILED, "exit_code", code, {"exit_code": code})


def tail_of(pods: Sequence[Object]) -> str:
    """Return the last lines of the container that failed first, as the kubelet kept them: at most 80 lines, 2 KiB.

    The container's terminationMessagePolicy is FallbackToLogsOnError.
    """
    for pod in sorted(pods, key=_blame):
        ended = terminated(pod)
        if ended.get("exitCode") and (text := str(ended.get("message") or "").replace("\0", "")):
            return text[-LONGEST_TAIL:]
    return ""


def first_to_blame(pods: Sequence[Object]) -> Object | None:
    """Return the pod because of which the attempt did not succeed; the others were ended because of it.

    A pod that its node rejected or ended comes first: programs elsewhere fail when they miss it. The next is the
    program that failed first. Times have whole seconds; within one, a program that a signal killed comes before one
    that gave up, since the latter may have missed the former.
    """
    return min((pod for pod in pods if not has_succeeded(pod)), key=_blame, default=None)


def _blame(pod: Object) -> tuple[int, str, bool, int]:
    ended = terminated(pod)
    cause = 3
    if rejected(pod):
        cause = 0
    elif ended_by_its_node(pod):
        cause = 1
    elif ended_by_itself(pod):
        cause = 2
    gave_up = (ended.get("exitCode") or 0) <= BY_A_SIGNAL
    return cause, ended.get("finishedAt") or NEVER, gave_up, index_of(pod)


def reason_of(pod: Object) -> str:
    """Return why a pod that has ended did so, as a code; empty: it has not."""
    if not end_proven(pod):
        return ""
    if has_succeeded(pod):
        return "succeeded"
    if rejected(pod) or ended_by_its_node(pod):
        return "ended_from_outside"
    if not ended_by_itself(pod):
        return "taken_down"
    return "out_of_memory" if end_reason(pod) == "OOMKilled" else "exit_code"


def terminated(pod: Object) -> Object:
    found: Object = container_status(pod).get("state", {}).get("terminated") or {}
    return found


def has_succeeded(pod: Object) -> bool:
    """Return True if the program ended well by itself. One that is told to end may leave with exit code 0, too."""
    return pod.get("status", {}).get("phase") == "Succeeded" and ended_by_itself(pod)


def ended_by_itself(pod: Object) -> bool:
    """Return True if the pod's program had ended before anybody deleted the pod.

    The kubelet deletes a pod anew when nothing of it is left, without grace: from then on the time of the first
    deletion is lost, and the pod looks like one that was deleted after its end.
    """
    if is_disrupted(pod):
        return False
    metadata = pod["metadata"]
    ended = terminated(pod).get("finishedAt")
    if (asked_at := metadata.get("deletionTimestamp")) is None or ended is None:
        return asked_at is None
    before = datetime.fromisoformat(asked_at) - datetime.fromisoformat(ended)
    if grace_seconds := metadata.get("deletionGracePeriodSeconds"):
        differ = CLOCKS_DIFFER if terminated(pod).get("exitCode") == ASKED_TO_END else timedelta()
        return before > timedelta(seconds=grace_seconds) + differ
    seen = pod["status"].get("observedGeneration")  # from 1.34 on; a deletion makes a new generation
    return before > LONGEST_CLEANING if seen is None else seen < metadata.get("generation", 0)


def ended_by_its_node(pod: Object) -> bool:
    """Return True for an eviction, a node that was lost or went down, and whatever else was done to the pod there."""
    return bool(pod.get("status", {}).get("reason") or evicted_why(pod) or is_disrupted(pod))


def is_disrupted(pod: Object) -> bool:
    return disruption(pod) is not None


def disruption(pod: Object) -> Object | None:
    """Return the condition of a pod that was evicted, preempted, or lost with its node."""
    conditions = pod.get("status", {}).get("conditions") or []
    ours = (one for one in conditions if one["type"] == "DisruptionTarget" and one["status"] == "True")
    return next(ours, None)


def why_ended(pod: Object) -> str:
    """Return the reason of an end. Of a deletion, Kubernetes says whose it was if it was a disruption."""
    reason = end_reason(pod)
    told = str((disruption(pod) or {}).get("reason") or "")
    return told or reason if reason == DELETED else reason
