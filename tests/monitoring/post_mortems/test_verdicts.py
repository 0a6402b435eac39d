"""What explains an end best: certain facts before words, and words only where nothing else explains it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.post_mortems.verdicts import verdict

AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
XID_79 = {"xids": [{"at": AT.isoformat(), "xid": 79, "gpu": "GPU-1", "node": "a"}]}
XID_13 = {"xids": [{"at": AT.isoformat(), "xid": 13, "gpu": "GPU-1", "node": "a"}]}
NAMESPACE = {"namespace_deleted_at": AT.isoformat()}
KILLS = {"oom_kills": {"kills": 3, "last_at": AT.isoformat()}}
AWAY = {"node": {"ready": False}}
EVICTED = {
    "pods": [{"name": "p", "reason": "Evicted", "message": "The node was low on resource: memory."}],
}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"ends": [{"exit_code": code, "reason": reason}]}


def said(
    facts: dict[str, Any], *lines: str, happened: str = "failed", code: str = "exit_code", **data: Any
) -> str:
    return verdict(happened, code, data, AT, facts, lines).code


@pytest.mark.parametrize(
    ("facts", "happened", "code", "expected"),
    [
        (ended(137, "OOMKilled"), "failed", "out_of_memory", "out_of_memory"),
        (ended(137, "OOMKilled") | XID_79, "failed", "out_of_memory", "gpu_lost"),
        (ended(1) | KILLS, "failed", "exit_code", "child_out_of_memory"),
        (EVICTED, "evicted", "interrupted", "evicted"),
        (EVICTED | NAMESPACE, "evicted", "interrupted", "namespace_deleted"),
        (AWAY, "interrupted", "interrupted", "node_lost"),
        (ended(1) | AWAY, "failed", "exit_code", "program_exit"),
        (ended(139), "failed", "exit_code", "program_signal"),
        (ended(1) | XID_13, "failed", "exit_code", "program_exit"),
        ({}, "failed", "ran_too_long", "ran_too_long"),
        ({}, "failed", "image_not_found", "image_not_found"),
        ({}, "lost", "end_unproven", "pod_vanished"),
        ({}, "interrupted", "ended_from_outside", "ended_from_outside"),
    ],
)
def test_the_most_certain_explanation_comes_first(
    facts: dict[str, Any], happened: str, code: str, expected: str
) -> None:
    assert said(facts, happened=happened, code=code) == expected


@pytest.mark.parametrize(("ago", "expected"), [("11:58", "out_of_memory"), ("09:00", "evicted")])
def test_an_end_before_an_old_restart_explains_nothing(ago: str, expected: str) -> None:
    end = {
        "exit_code": 137,
        "reason": "OOMKilled",
        "has_restarted": True,
        "finished_at": f"2026-11-27T{ago}:00Z",
    }
    assert said({"ends": [end]} | EVICTED, happened="evicted", code="interrupted") == expected


def test_the_last_lines_explain_an_exit_and_nothing_else() -> None:
    line = "RuntimeError: CUDA error: out of memory"
    assert said(ended(1), "fine", line, "at the end") == "gpu_out_of_memory"
    assert said(ended(137, "OOMKilled"), line, code="out_of_memory") == "out_of_memory"
    assert said({}, line, happened="interrupted", code="interrupted", reason="Deleted") == "pod_deleted"


def test_a_warning_of_berth_just_before_the_end_explains_it_and_an_old_one_does_not() -> None:
    def story(at: str) -> dict[str, Any]:
        return {"story": [{"at": at, "level": "warning", "code": "gpu_stuck", "data": {}}]}

    facts = ended(1)
    assert said(facts | story("2026-11-27T11:59:30+00:00")) == "gpu_stuck"
    assert said(facts | story("2026-11-27T11:00:00+00:00")) == "program_exit"


@given(st.lists(st.text(max_size=200), max_size=5), st.integers(0, 255))
def test_any_log_gets_a_verdict(lines: list[str], code: int) -> None:
    assert said(ended(code), *lines)
