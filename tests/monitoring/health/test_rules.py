"""Rules for problems of a node and its GPUs: a table of observations and decisions. No database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters import explain
from clusters.models import Gpu, Node
from monitoring.health import rules, xids
from monitoring.health.rules import About, Observed, Out, Verdict, verdicts, why_out
from monitoring.models import AgentState, Trouble, XidEvent

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BOOT = "boot-1"


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def node(**values: Any) -> Node:
    return Node(**({"name": "n", "ready": True, "system": {"bootID": BOOT}} | values))


def gpu(uuid: str = "GPU-a", **sample: Any) -> Gpu:
    return Gpu(node="n", uuid=uuid, seen_at=NOW, sample={"uuid": uuid, "state": "ok", **sample})


def agent(*codes: str, **values: Any) -> AgentState:
    troubles = [{"code": code, "detail": "as it said"} for code in codes]
    return AgentState(**({"node": "n", "seen_at": NOW, "interval_seconds": 5, "troubles": troubles} | values))


def xid(number: int, *, of: str = "GPU-a", at: datetime = NOW) -> XidEvent:
    return XidEvent(node="n", gpu=of, xid=number, at=at)


def observed(**values: Any) -> Observed:
    seen: dict[str, Any] = {"name": "n", "now": NOW, "node": node(), "agent": agent(), "gpus": [gpu()]}
    return Observed(**(seen | values))


def remembered(found: list[Verdict], since: datetime = NOW) -> list[Trouble]:
    """Return open troubles for the verdicts, as judging writes them."""
    return [
        Trouble(
            about=one.about, subject=one.subject, code=one.code, data=dict(one.data), since=since, node="n"
        )
        for one in found
    ]


def codes(found: list[Verdict]) -> dict[str, Out]:
    return {verdict.code: verdict.out for verdict in found}


def test_a_healthy_node_has_no_verdicts() -> None:
    assert verdicts(observed()) == []
    assert verdicts(Observed(name="n", now=NOW)) == []


@pytest.mark.parametrize(
    ("conditions", "ready", "expected"),
    [
        ({"DiskPressure": "True"}, True, {"node_short_of_disk": Out.NODE}),
        ({"MemoryPressure": "True"}, True, {"node_short_of_memory": Out.NODE}),
        ({"PIDPressure": "True"}, True, {"node_short_of_memory": Out.NODE}),
        ({"NetworkUnavailable": "True"}, True, {"network_plugin_down": Out.NODE}),
        ({"DiskPressure": "False"}, True, {}),
        ({"DiskPressure": "Unknown", "MemoryPressure": "True"}, False, {"node_lost": Out.NODE}),
    ],
)
def test_a_nodes_conditions_take_it_out(
    conditions: dict[str, str], ready: bool, expected: dict[str, Out]
) -> None:
    told = {kind: {"status": status, "message": ""} for kind, status in conditions.items()}
    found = verdicts(observed(node=node(conditions=told, ready=ready), agent=None))
    assert codes(found) == expected


GPUS, NONE = {"cpu": 64000, "nvidia.com/gpu": 4}, {"cpu": 64000, "nvidia.com/gpu": 0}
WITHDRAWN = node(capacity=GPUS, allocatable=NONE)


@pytest.mark.parametrize("told", [{"capacity": GPUS}, {"labels": {"nvidia.com/gpu.count": "4"}}])
def test_a_device_plugin_that_offers_no_gpus_though_all_work_is_a_problem(
    told: dict[str, Any],
) -> None:
    found = verdicts(observed(node=node(allocatable=NONE, **told)))
    assert codes(found) == {"gpu_plugin_down": Out.GPUS}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"node": node(capacity=GPUS, allocatable=GPUS | {"nvidia.com/gpu": 3})}, set()),
        ({"node": node(allocatable=NONE)}, set()),  # never had a device plugin
        ({"node": WITHDRAWN, "agent": None}, set()),  # nobody knows that they work
        ({"node": WITHDRAWN, "gpus": [gpu(state="lost")]}, {"gpu_lost"}),
    ],
)
def test_a_device_plugin_that_withdraws_gpus_for_a_reason_is_no_problem(
    seen: dict[str, Any], expected: set[str]
) -> None:
    assert codes(verdicts(observed(**seen))).keys() == expected


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (
            "reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
            "network_plugin_down",
        ),
        ("[container runtime is down, PLEG is not healthy]", "node_unwell"),
        ("something that nobody has heard of", "node_lost"),
    ],
)
def test_the_kubelet_says_why_its_node_is_not_ready_while_it_is_heard(message: str, code: str) -> None:
    told = {"Ready": {"status": "False", "message": message}}
    assert codes(verdicts(observed(node=node(conditions=told, ready=False), agent=None))) == {code: Out.NODE}
    told["Ready"]["status"] = "Unknown"
    found = verdicts(observed(node=node(conditions=told, ready=False), agent=None))
    assert codes(found) == {"node_lost": Out.NODE}


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        ("driver_not_loaded", {"gpu_driver_not_loaded": Out.GPUS}),
        ("version_mismatch", {"gpu_driver_mismatch": Out.GPUS}),
        ("uvm_missing", {"gpu_uvm_missing": Out.GPUS}),
        ("nvml_hangs", {"gpu_stuck": Out.GPUS}),
        ("gpu_lost", {"gpu_lost": Out.GPUS}),
        ("devices_denied", {"gpu_vanished": Out.NOTHING}),  # new workspaces get a GPU
        ("library_missing", {"gpu_agent_limited": Out.NOTHING}),  # in the agent's own container
        ("kubelet_silent", {"gpu_agent_limited": Out.NOTHING}),
        ("one_of_a_newer_agent", {"gpu_agent_limited": Out.NOTHING}),
    ],
)
def test_an_agents_report_takes_out_what_it_is_about(trouble: str, expected: dict[str, Out]) -> None:
    assert codes(verdicts(observed(agent=agent(trouble)))) == expected


@pytest.mark.parametrize(
    ("silence", "interval", "silent"), [(60, 5, False), (150, 5, True), (150, 30, False), (200, 30, True)]
)
def test_a_silent_agent_takes_nothing_out_and_is_silent_only_while_berth_could_hear_it(
    silence: int, interval: int, silent: bool
) -> None:
    expected = {"agent_silent": Out.NOTHING} if silent else {}
    seen = observed(agent=agent(seen_at=ago(seconds=silence), interval_seconds=interval))
    assert codes(verdicts(seen)) == expected
    state = agent(seen_at=ago(hours=1), interval_seconds=interval)
    seen = observed(agent=state, hears_since=ago(seconds=silence))
    assert codes(verdicts(seen)) == expected
    known = remembered(verdicts(observed(agent=state)))
    assert verdicts(replace(seen, standing=known))  # it was silent before Berth was away


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ({"state": "lost"}, {"gpu_lost": Out.GPU}),
        ({"state": "gone"}, {"gpu_lost": Out.GPU}),
        ({"state": "reset_required"}, {"gpu_stuck": Out.GPU}),
        ({"state": "failing"}, {"gpu_stuck": Out.GPU}),
        ({"recovery_action": "gpu_reset"}, {"gpu_stuck": Out.GPU}),
        ({"recovery_action": "none"}, {}),
        ({"ecc_uncorrected_since_boot": 1}, {"gpu_memory_damaged": Out.GPU}),
        ({"ecc_uncorrected_since_boot": 0, "ecc_uncorrected_ever": 9}, {}),
        ({"row_remap_failed": True, "row_remap_pending": True}, {"gpu_memory_damaged": Out.GPU}),
        ({"row_remap_pending": True}, {"gpu_repair_due": Out.NOTHING}),
        ({"slowed_by": ["heat"]}, {}),  # only a lasting slowdown counts
    ],
)
def test_a_gpus_sample_takes_it_out(sample: dict[str, Any], expected: dict[str, Out]) -> None:
    assert codes(verdicts(observed(gpus=[gpu(**sample)]))) == expected


@pytest.mark.parametrize(
    ("reasons", "slowed"),
    [
        (["heat"], True),
        (["power_brake"], True),
        (["hardware"], True),
        (["power_cap", "sync_boost"], False),
        ([], False),
    ],
)
def test_only_heat_and_failing_power_slow_a_gpu(reasons: list[str], slowed: bool) -> None:
    assert rules.is_slowed(gpu(slowed_by=reasons)) == slowed


def test_a_slow_gpu_is_a_problem_only_if_it_lasts() -> None:
    slow = gpu()
    slow.slowed_since = ago(minutes=2)
    assert verdicts(observed(gpus=[slow])) == []
    slow.slowed_since = ago(minutes=4)
    assert codes(verdicts(observed(gpus=[slow]))) == {"gpu_slowed": Out.NOTHING}


def test_a_deleted_node_has_no_verdicts() -> None:
    seen = observed(node=None, agent=agent("uvm_missing", seen_at=ago(days=1)), xids=[xid(79)])
    assert verdicts(seen) == []


def test_an_error_outlasts_the_state_that_came_with_it() -> None:
    both = observed(gpus=[gpu(state="lost")], xids=[xid(79)])
    later = observed(standing=remembered(verdicts(both)), now=NOW + timedelta(days=2), agent=None)
    assert codes(verdicts(later)) == {"gpu_lost": Out.GPU}


def test_a_gpu_that_is_gone_is_forgotten_when_its_node_starts_without_it() -> None:
    first = observed(gpus=[gpu(state="gone")])
    standing = remembered(verdicts(first))
    assert codes(verdicts(replace(first, standing=standing))) == {"gpu_lost": Out.GPU}
    assert verdicts(replace(first, standing=standing, node=node(system={"bootID": "boot-2"}))) == []


# --- Xids


@pytest.mark.parametrize(
    ("number", "code", "out"),
    [
        (13, "gpu_program_fault", Out.NOTHING),
        (31, "gpu_program_fault", Out.NOTHING),
        (43, "gpu_program_fault", Out.NOTHING),
        (109, "gpu_program_fault", Out.NOTHING),
        (48, "gpu_memory_damaged", Out.GPU),
        (64, "gpu_memory_damaged", Out.GPU),
        (94, "gpu_repair_due", Out.NOTHING),  # contained: the program ended, the GPU goes on
        (95, "gpu_memory_damaged", Out.GPU),
        (79, "gpu_lost", Out.GPU),
        (119, "gpu_stuck", Out.GPU),
        (74, "gpu_link_fault", Out.GPU),
    ],
)
def test_an_xid_means_what_nvidias_catalogue_says(number: int, code: str, out: Out) -> None:
    assert codes(verdicts(observed(xids=[xid(number)]))) == {code: out}


@pytest.mark.parametrize("number", [63, 92, 106, 154, 3, 9999])
def test_an_xid_that_is_only_a_note_has_no_verdict(number: int) -> None:
    assert verdicts(observed(xids=[xid(number)])) == []


def test_an_xid_is_remembered_until_the_node_restarts() -> None:
    first = observed(xids=[xid(79)])
    later = replace(
        first, now=NOW + timedelta(days=3), xids=[], standing=remembered(verdicts(first)), agent=None
    )
    assert codes(verdicts(later)) == {"gpu_lost": Out.GPU}
    assert verdicts(replace(later, node=node(system={"bootID": "boot-2"}))) == []


def test_an_xid_is_over_when_the_driver_says_so_some_time_later() -> None:
    event = xid(119, at=ago(seconds=60))
    at_once, later = gpu(recovery_action="none"), gpu(recovery_action="none")
    at_once.seen_at = ago(seconds=55)
    assert codes(verdicts(observed(gpus=[at_once], xids=[event]))) == {"gpu_stuck": Out.GPU}
    assert verdicts(observed(gpus=[later], xids=[event])) == []


def test_an_xid_before_an_admins_trust_is_over_and_one_after_it_counts() -> None:
    trusted = gpu()
    trusted.trusted_at = ago(minutes=5)
    old, new = xid(79, at=ago(minutes=9)), xid(79, at=ago(minutes=1))
    standing = remembered(verdicts(observed(xids=[old])), since=ago(minutes=9))
    assert verdicts(observed(gpus=[trusted], xids=[old], standing=standing)) == []
    assert codes(verdicts(observed(gpus=[trusted], xids=[old, new]))) == {"gpu_lost": Out.GPU}


def test_a_settled_error_does_not_come_back_by_the_same_event() -> None:
    event = xid(79, at=ago(minutes=9))
    settled = {("GPU-a", "gpu_lost"): ago(minutes=2)}
    assert verdicts(observed(xids=[event], settled=settled)) == []
    other = {("GPU-a", "gpu_program_fault"): ago(minutes=2)}  # does not cover an Xid that came late
    assert codes(verdicts(observed(xids=[event], settled=other))) == {"gpu_lost": Out.GPU}


def test_a_programs_fault_lasts_a_few_minutes() -> None:
    event = xid(13, at=ago(minutes=1))
    standing = remembered(verdicts(observed(xids=[event])))
    assert codes(verdicts(observed(xids=[event], standing=standing))) == {"gpu_program_fault": Out.NOTHING}
    later = observed(xids=[event], standing=standing, now=NOW + timedelta(minutes=15), agent=None)
    assert verdicts(later) == []


def test_memory_errors_that_an_admin_trusted_do_not_count() -> None:
    trusted = gpu(ecc_uncorrected_since_boot=3)
    trusted.trusted_errors = 3
    assert verdicts(observed(gpus=[trusted])) == []
    trusted.sample["ecc_uncorrected_since_boot"] = 4
    assert codes(verdicts(observed(gpus=[trusted]))) == {"gpu_memory_damaged": Out.GPU}


def test_an_xid_without_a_gpu_counts_for_the_only_gpu_or_for_the_node() -> None:
    assert verdicts(observed(xids=[xid(79, of="")]))[0].subject == "GPU-a"
    [found] = verdicts(observed(xids=[xid(79, of="")], gpus=[gpu("GPU-a"), gpu("GPU-b")]))
    assert (found.about, found.subject, found.out) == (About.NODE, "n", Out.GPUS)
    assert verdicts(observed(xids=[xid(13, of="")], gpus=[gpu("GPU-a"), gpu("GPU-b")])) == []


@settings(max_examples=40, deadline=None)
@given(
    numbers=st.lists(st.sampled_from(sorted(xids.KNOWN)), max_size=6),
    states=st.lists(
        st.sampled_from(["ok", "lost", "reset_required", "failing", "gone"]), min_size=1, max_size=4
    ),
    errors=st.integers(0, 3),
    ready=st.booleans(),
)
def test_a_second_look_decides_the_same(
    numbers: list[int], states: list[str], errors: int, ready: bool
) -> None:
    """Check that a second look at the first one's rows, with or without the events, decides alike."""
    gpus = [
        gpu(f"GPU-{at}", state=state, ecc_uncorrected_since_boot=errors) for at, state in enumerate(states)
    ]
    events = [xid(number, of=gpus[at % len(gpus)].uuid) for at, number in enumerate(numbers)]
    first = observed(node=node(ready=ready), gpus=gpus, xids=events)
    found = verdicts(first)
    for later in ([], events):
        again = verdicts(replace(first, standing=remembered(found), xids=later))
        assert {v.key: v.out for v in again} == {v.key: v.out for v in found}
    for one in gpus:
        hit = any(xids.meaning_of(event.xid).takes_out for event in events if event.gpu == one.uuid)
        is_bad = hit or errors > 0 or one.sample["state"] != "ok"
        assert bool(why_out(found, Out.GPU, one.uuid)) == is_bad


def test_every_code_has_a_sentence() -> None:
    every = {"gpu_vanished", "gpu_memory_damaged", "gpu_slowed", *rules.FOR_ADMINS}
    every.update(rules.PRESSURES.values(), rules.DRIVER_TROUBLES.values(), rules.STATES.values())
    assert every <= explain.BY_CODE.keys()
