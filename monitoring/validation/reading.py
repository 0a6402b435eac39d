"""Result of a test, from its pod and its log. Pure.

The program's output decides along with its exit code: “Test PASSED” beside a failure does not count. If the program
never started, no fault of the GPUs is known: the test could not run, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from clusters.causes.cause import Data
from clusters.explain import diagnose
from monitoring.models import Validation
from workloads.pods import status, troubles

Object = Mapping[str, Any]
Outcome = Validation.Outcome

PASSED = "Test PASSED"
MOST_LOG_BYTES = 64 * 2**10
MOST_SAID = 200


@dataclass(frozen=True)
class Verdict:
    outcome: Validation.Outcome
    code: str = ""
    data: Data = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """The program's exit code and times, once it has ended."""

    exit_code: int
    started_at: datetime | None
    ended_at: datetime | None


def has_begun(pod: Object | None) -> bool:
    return pod is not None and status.has_started(pod)


def has_failed(pod: Object | None) -> bool:
    """Return True if the node rejected or evicted the pod."""
    return pod is not None and pod.get("status", {}).get("phase") == "Failed"


def run_of(pod: Object) -> Run | None:
    ended = status.container_status(pod).get("state", {}).get("terminated")
    if not ended or not ended.get("startedAt"):  # it never started
        return None
    return Run(int(ended.get("exitCode", 1)), at(ended.get("startedAt")), at(ended.get("finishedAt")))


def at(text: str | None) -> datetime | None:
    return parse_datetime(text) if text else None


def verdict(run: Run, log: str, image: str) -> Verdict:
    if run.exit_code == 0:
        if PASSED in log:
            return Verdict(Outcome.PASSED, "validation_passed")
        return Verdict(Outcome.NOT_RUN, "validation_silent", {"image": image})
    told = diagnose("container", log) if log else None
    if told is not None and told.known:
        return Verdict(Outcome.FAILED, told.code, told.data)
    said = (log.splitlines() or [""])[-1][:MOST_SAID]
    return Verdict(Outcome.FAILED, "validation_wrong", {"exit_code": run.exit_code, "said": said})


def in_the_way(pod: Object | None, events: Sequence[Object], node: Object | None) -> Verdict:
    """Return why the program has not started; without a code if no problem is known."""
    if pod is None:
        return Verdict(Outcome.NOT_RUN)
    found = troubles.trouble(troubles.Snapshot(pods=[pod], events=events, node=node))
    if found is not None:
        return Verdict(Outcome.NOT_RUN, found.diagnosis.code, found.diagnosis.data)
    told = status.explained_end(pod)
    return Verdict(Outcome.NOT_RUN, told.code, told.data) if told else Verdict(Outcome.NOT_RUN)


def without_end(found: Verdict, before: Verdict, *, has_begun: bool) -> Verdict:
    """Return the verdict on a test that did not end in time. A GPU that hangs has failed, unless its node is away."""
    if found.code:
        return found
    if has_begun:
        return Verdict(Outcome.FAILED, "validation_hangs")
    return before if before.code else Verdict(Outcome.NOT_RUN, "validation_too_long")


def tail(lines: Iterable[str], most_bytes: int = MOST_LOG_BYTES) -> str:
    """Return the end of a log. Memory use stays bounded even if the log has no end."""
    kept = b""
    for line in lines:
        kept = (kept + line.replace("\0", "\ufffd").encode(errors="replace") + b"\n")[-most_bytes:]
    return kept.decode(errors="ignore").strip()
