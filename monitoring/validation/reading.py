"""What a test's pod and its log say: is it over, and did it pass? Pure.

The program's words decide, and its exit code: “Test PASSED” beside a failure is none. Where the program was never
begun, the GPUs are not at fault for all that is known: the test could not run, and says why.
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
from workspaces import observe

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
    """The program's own time, once it has ended."""

    exit_code: int
    started_at: datetime | None
    ended_at: datetime | None


def has_begun(pod: Object | None) -> bool:
    return pod is not None and observe.has_started(pod)


def has_failed(pod: Object | None) -> bool:
    """Its node would not have it, or put it out."""
    return pod is not None and pod.get("status", {}).get("phase") == "Failed"


def run_of(pod: Object) -> Run | None:
    ended = observe.container_status(pod).get("state", {}).get("terminated")
    if not ended or not ended.get("startedAt"):  # it was never begun
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
    """Why it has not begun; without a code where nothing is known to be wrong."""
    if pod is None:
        return Verdict(Outcome.NOT_RUN)
    found = observe.trouble(observe.Seen(pods=[pod], events=events, node=node))
    if found is not None:
        return Verdict(Outcome.NOT_RUN, found.diagnosis.code, found.diagnosis.data)
    told = observe.end_told(pod)
    return Verdict(Outcome.NOT_RUN, told.code, told.data) if told else Verdict(Outcome.NOT_RUN)


def without_end(found: Verdict, before: Verdict, *, has_begun: bool) -> Verdict:
    """Its time is over, or the program will never end. A GPU that hangs has failed, unless its node is away."""
    if found.code:
        return found
    if has_begun:
        return Verdict(Outcome.FAILED, "validation_hangs")
    return before if before.code else Verdict(Outcome.NOT_RUN, "validation_too_long")


def tail(lines: Iterable[str], most_bytes: int = MOST_LOG_BYTES) -> str:
    """The end of a log, as much as is kept; not more than that is held of one without an end."""
    kept = b""
    for line in lines:
        kept = (kept + line.replace("\0", "\ufffd").encode(errors="replace") + b"\n")[-most_bytes:]
    return kept.decode(errors="ignore").strip()
