"""Decide what explains a run's end best, by all that is known of it. Pure: facts in, a diagnosis out.

What is certain comes first: an error of its GPU, a namespace that somebody deleted, memory that ran out. A program's
own words come last, and only where nothing else explains its exit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from signal import Signals
from typing import Any

from clusters import explain
from clusters.causes.cause import Diagnosis
from monitoring.health.xids import meaning_of
from monitoring.models import PostMortem

Happened = PostMortem.Happened
Facts = Mapping[str, Any]

OOM_KILLED = "OOMKilled"
BY_A_SIGNAL = 128  # exit codes above it
LINES_READ = 60
# An explanation that Berth wrote so shortly before the end is about the end.
JUST_BEFORE = timedelta(minutes=2)
SINCE_A_KILL = timedelta(minutes=30)
# A container that crashes is started again within five minutes.
BEFORE_A_RESTART = timedelta(minutes=10)
# Codes of an end that say no more than that it ended.
BARE = frozenset(
    {
        "exit_code", "rank_exit_code", "exit_code_is_final", "interrupted", "interrupted_often", "ended_from_outside",
        "ended_before_ready", "container_restarted", "node_was_unwell", "end_unproven", "end_confirmed", "sent_back",
        "unknown", "killed", "program_ended",
    }
)  # fmt: skip
# What ranks print when another one of them ended: the reason stands before it, or in that one's log.
ECHO = "workers_disconnected"
# What a program's own last lines may be trusted with: words that only its own failure prints.
FROM_LOGS = frozenset(
    {
        "gpu_out_of_memory", "gpu_software_unfit", "gpu_program_fault", "gpu_lost", "gpu_memory_damaged",
        "gpu_takes_no_program", "gpu_none_seen", "gpu_driver_mismatch", "shared_memory_full", "volume_full",
        "out_of_memory", "too_many_processes", "server_not_reached", "storage_unwell",
    }
)  # fmt: skip


def verdict(
    happened: str, code: str, data: Mapping[str, Any], at: datetime, facts: Facts, lines: Sequence[str]
) -> Diagnosis:
    """Return the first explanation in the order of certainty; the end's own code if there is none."""
    facts = {**facts, "ends": [one for one in facts.get("ends", ()) if concerns(one, at)]}
    candidates = (
        _of_gpu(facts),
        _of_namespace(facts),
        _of_memory(code, facts),
        _of_pod(facts),
        _of_story(at, facts),
        _of_kills(at, facts),
        None if code in BARE else Diagnosis(code, dict(data)),
        _of_node(happened, facts),
        _of_log(facts, lines),
        _of_exit(data, facts),
        _of_hand(happened, code, data),
    )
    return next((one for one in candidates if one is not None), Diagnosis(code, dict(data)))


def concerns(end: Mapping[str, Any], at: datetime) -> bool:
    """Return False for the end of a container that restarted long before: what ended later had another cause."""
    if end.get("has_restarted") and end.get("finished_at"):
        with suppress(ValueError, TypeError):  # a time that is none
            return at - datetime.fromisoformat(end["finished_at"]) <= BEFORE_A_RESTART
    return True


def _of_gpu(facts: Facts) -> Diagnosis | None:
    """An error of the driver that takes the run's GPU out; one without a GPU counts where the run had all of them."""
    for one in facts.get("xids", ()):
        meaning = meaning_of(one["xid"])
        if meaning.takes_out and meaning.code and one["gpu"] is not None:
            return Diagnosis(meaning.code, {"xid": one["xid"], "at": one["at"]})
    return None


def _of_namespace(facts: Facts) -> Diagnosis | None:
    at = facts.get("namespace_deleted_at")
    return None if at is None else Diagnosis("namespace_deleted", {"at": at})


def _of_memory(code: str, facts: Facts) -> Diagnosis | None:
    if code == "out_of_memory" or any(one["reason"] == OOM_KILLED for one in facts.get("ends", ())):
        return Diagnosis("out_of_memory", {})
    return None


def _of_pod(facts: Facts) -> Diagnosis | None:
    """Explain the node's own words about the pod: an eviction, a shutdown, a refusal."""
    for pod in facts.get("pods", ()):
        if pod["reason"] or pod["message"]:
            found = explain.diagnose("container", f"{pod['reason'] or ''}: {pod['message'] or ''}")
            if found.known and found.code not in BARE:
                return found
    return None


def _of_story(at: datetime, facts: Facts) -> Diagnosis | None:
    """Return the last cause that Berth named as a warning or an error just before the end."""
    for one in reversed(facts.get("story", ())):
        is_late = at - datetime.fromisoformat(one["at"]) <= JUST_BEFORE
        if one["level"] != "info" and is_late and one["code"] not in BARE and explain.listed(one["code"]):
            return Diagnosis(one["code"], dict(one["data"]))
    return None


def _of_kills(at: datetime, facts: Facts) -> Diagnosis | None:
    """Processes that the kernel ended not long before: programs may wait long for a child that is gone."""
    told = facts.get("oom_kills") or {}
    if not told.get("kills") or at - datetime.fromisoformat(told["last_at"]) > SINCE_A_KILL:
        return None
    return Diagnosis("child_out_of_memory", {"kills": told["kills"]})


def _of_node(happened: str, facts: Facts) -> Diagnosis | None:
    """Return what was wrong with the node or the GPUs, for a run that did not end by itself."""
    if happened in (Happened.FAILED, Happened.RESTARTED) and not _killed(facts):
        return None
    troubles = sorted(facts.get("troubles", ()), key=lambda one: not one["takes_out"])
    for one in troubles:
        if one["takes_out"] and explain.listed(one["code"]):
            return Diagnosis(one["code"], dict(one["data"]))
    node = facts.get("node")
    return Diagnosis("node_lost", {}) if node is not None and not node["ready"] else None


def _killed(facts: Facts) -> bool:
    return any((one["exit_code"] or 0) > BY_A_SIGNAL for one in facts.get("ends", ()))


def _of_log(facts: Facts, lines: Sequence[str]) -> Diagnosis | None:
    """Return what the program's last lines say, the newest first; only for a program that failed by itself."""
    if not any(one["exit_code"] for one in facts.get("ends", ())):
        return None
    echo = None
    for text in reversed(lines[-LINES_READ:]):
        found = explain.diagnose("gpu", text)
        if found.known and found.code in FROM_LOGS:
            return Diagnosis(found.code, {**found.data, "from_log": True})
        echo = echo or (Diagnosis(ECHO, {"from_log": True}) if found.code == ECHO else None)
    return echo


def _of_exit(data: Mapping[str, Any], facts: Facts) -> Diagnosis | None:
    codes = [one["exit_code"] for one in facts.get("ends", ()) if one["exit_code"]]
    code = data.get("exit_code") or next(iter(codes), None)
    if not code:
        return None
    if code > BY_A_SIGNAL and (name := _signal(code - BY_A_SIGNAL)):
        return Diagnosis("program_signal", {"signal": name, "exit_code": code})
    return Diagnosis("program_exit", {"exit_code": code})


def _signal(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return ""


def _of_hand(happened: str, code: str, data: Mapping[str, Any]) -> Diagnosis | None:
    if happened == Happened.LOST or data.get("reason") == "Vanished":
        return Diagnosis("pod_vanished", {})
    return Diagnosis("pod_deleted", {}) if data.get("reason") == "Deleted" else None


def exits(ends: Iterable[Mapping[str, Any]]) -> Iterator[int]:
    """Yield the exit codes of containers, the last end first."""
    for one in reversed(list(ends)):
        if one["exit_code"] is not None:
            yield one["exit_code"]
