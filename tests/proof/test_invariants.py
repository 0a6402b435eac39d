"""Tests of `invariants`: no complaint about a healthy world, and one about any single fault."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.proof.invariants import KINDS, STEPS, World, about, about_all
from tests.proof.moments import LOOKS, PARTS, Case, cases, groups

AT = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
Facts = dict[str, Any]


def body(kind: str, name: str, **more: Any) -> Facts:
    return {"kind": kind, "metadata": {"name": name, "labels": {"berth.dev/run": "r"}}, **more}


def whole() -> Facts:
    """Facts of a ready workspace with one GPU."""
    pod = body("Pod", "ws-w", spec={"containers": [{"resources": {"requests": {"gpu": "1"}}}]})
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    objects = {kind: [body(kind, "ws-w")] for kind in KINDS}
    workspace: Facts = {
        "id": "w",
        "name": "w",
        "run": "r",
        "phase": "ready",
        "desired": "running",
        "ending": "",
    }
    workspace |= {"message_code": "ready", "failure": None, "dirty_since": None, "deleted_at": None}
    workspace |= {"disk_mib": 0, "last_event": 10}
    home: Facts = {"name": "home", "kind": "home", "claim": "vol-h", "bound_to": "pv", "holders": ["w"]}
    home |= {"made_for": None, "bin_until": None, "deleted_at": None}
    claim: Facts = {"id": "r", "state": "admitted", "units": 1, "resource_name": "gpu"}
    claim |= {"end_unproven_since": None, "released_at": None, "admitted_at": AT}
    claim |= {"settled_until": AT + HOUR, "microseconds": 3_600_000_000}
    return {
        "workspace": workspace,
        "claims": [claim],
        "events": [
            {"number": number, "run": "r", "step": step, "level": "info"}
            for number, step in enumerate(STEPS, start=1)
        ],
        "objects": objects | {"Pod": [pod]},
        "volumes": [home],
        "volume_claims": {"vol-h": body("", "vol-h")},
        "strangers": {kind: [] for kind in KINDS},
    }


def wrong(facts: Facts) -> list[str]:
    objects = {"w": facts["objects"], "gone": facts["strangers"]}
    world = World(
        [facts["workspace"]],
        {"w": facts["claims"]},
        {"w": facts["events"]},
        objects,
        facts["volumes"],
        facts["volume_claims"],
    )
    return [*about(facts["workspace"], world), *about_all(world)]


def test_a_healthy_world_has_no_complaints() -> None:
    assert wrong(whole()) == []


def at_rest(facts: Facts) -> Facts:
    """Change the facts to a stopped workspace that keeps its files."""
    facts["workspace"] |= {"phase": "stopped", "desired": "stopped"}
    facts["claims"][0] |= {"state": "released", "released_at": AT + HOUR}
    facts["objects"] |= {"Pod": []}
    return facts


def test_a_stopped_workspace_with_its_files_has_no_complaints() -> None:
    assert wrong(at_rest(whole())) == []


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda f: f["workspace"].update(phase="starting"), "no rest"),
        (lambda f: f["claims"][0].update(microseconds=3_600_000_001), "and the ledger has 3600000001"),
        (lambda f: f["claims"][0].update(released_at=AT + 2 * HOUR), "and the ledger has 3600000000"),
        (lambda f: f["workspace"].update(phase="failed", desired="stopped"), "failed without a code"),
        (lambda f: f["workspace"].update(ending="stop"), "still being ended"),
        (lambda f: f["workspace"].update(dirty_since=AT), "is not answered"),
        (lambda f: f["workspace"].update(desired="stopped"), "is ready and wanted stopped"),
        (lambda f: f["objects"]["Pod"].append(f["objects"]["Pod"][0]), "has 2 Pod, not 1"),
        (lambda f: f["objects"]["Secret"].clear(), "has 0 Secret, not 1"),
        (
            lambda f: f["objects"]["Pod"][0]["metadata"]["labels"].update({"berth.dev/run": "o"}),
            "is of run o",
        ),
        (lambda f: f["objects"]["Pod"][0]["status"].update(conditions=[]), "ready and its pod is not"),
        (lambda f: f["objects"]["Service"][0]["metadata"].update(deletionTimestamp="t"), "being deleted"),
        (lambda f: f["volume_claims"].clear(), "lost what is kept"),
        (lambda f: f["volume_claims"].update({"vol-x": body("", "vol-x")}), "vol-x belongs to no row"),
        (lambda f: f["volumes"].clear(), "mounts nothing"),
        (lambda f: f["volumes"][0].update(kind="disk"), "mounts disk"),
        (lambda f: f["claims"].append(f["claims"][0]), "live claims ['admitted', 'admitted']"),
        (lambda f: f["claims"][0].update(state="released", released_at=AT), "live claims []"),
        (lambda f: f["claims"][0].update(id="o"), "is not its run"),
        (lambda f: f["claims"][0].update(units=2), "of 2 units, and its pods hold 1"),
        (lambda f: f["claims"][0].update(end_unproven_since=AT), "in doubt"),
        (lambda f: f["events"].pop(4), "its events are"),
        (lambda f: f["events"][3].update(step="disk"), "told its steps as"),
        (lambda f: f["strangers"]["Secret"].append(body("Secret", "ws-x")), "Secret ws-x belongs to no row"),
        (
            lambda f: at_rest(f)["objects"]["Pod"].append(whole()["objects"]["Pod"][0]),
            "has 1 Pod, not 0",
        ),
        (
            lambda f: at_rest(f)["workspace"].update(deleted_at=AT, desired="deleted"),
            "is deleted, and mounts home",
        ),
        (
            lambda f: f["volumes"][0].update(bin_until=AT),
            "deleted with its files, and vol-h is left",
        ),
    ],
)
def test_each_fault_is_reported(break_it: Callable[[Facts], object], said: str) -> None:
    break_it(facts := deepcopy(whole()))
    assert any(said in sentence for sentence in wrong(facts)), wrong(facts)


@pytest.mark.parametrize("killed", [("web",), ("worker",), ("watcher",), PARTS])
def test_every_moment_is_in_one_group_and_no_group_needs_more_threads_than_there_are(killed: Any) -> None:
    served = [case for group in groups(*killed) for case in group]
    assert sorted(map(str, served)) == sorted(map(str, cases(*killed)))
    for group in groups(*killed):
        assert sum(case.takes_a_look for case in group) <= LOOKS
        assert not any(case.is_trigger for case in group[:-1])
    assert isinstance(served[0], Case)
