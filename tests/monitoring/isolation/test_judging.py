"""Targets and result of a proof, and its program as its pods run it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.models import valid_slug
from clusters.doctor import Level
from clusters.models import Cluster
from monitoring.isolation import judging, manifests, steps, words
from monitoring.isolation.judging import Round, Verdict
from monitoring.models import IsolationProof

ALL_PORTS = {"tenant:8888": True, "tenant:2222": True}
NO_PORTS = dict.fromkeys(ALL_PORTS, False)
BEFORE = Round(3, ALL_PORTS, True)


def judged(*, dns: bool = True, **reached: bool) -> Verdict:
    names = {name.replace("__", ":"): came for name, came in reached.items()}
    return judging.judge(BEFORE, Round(9, NO_PORTS | names, dns))


@pytest.mark.parametrize(
    ("found", "outcome", "code", "level"),
    [
        (judged(), "apart", "proof_apart", Level.OK),
        (judged(tenant__2222=True), "reached", "proof_tenant_reached", Level.FAIL),
        (judged(api__service=True), "reached", "proof_service_reached", Level.FAIL),
        (judged(metadata__x=True), "reached", "proof_service_reached", Level.FAIL),
        (judged(node__x=True, world__x=True), "apart", "proof_node_reached", Level.OK),
        (judged(dns=False), "apart", "proof_without_names", Level.FAIL),
    ],
)
def test_what_was_reached_with_the_policy_decides(
    found: Verdict, outcome: str, code: str, level: Level
) -> None:
    assert (found.outcome, found.code) == (outcome, code)
    row = IsolationProof(
        outcome=found.outcome,
        code=found.code,
        data=found.data,
        asked_at=timezone.now(),
        ended_at=timezone.now(),
    )
    assert words.level(row) == level
    assert "%" not in words.sentence(row) + words.hint(row)


def test_every_code_has_words() -> None:
    for code in words.WORDS:
        row = IsolationProof(code=code, outcome="unclear", asked_at=timezone.now(), ended_at=timezone.now())
        assert "%" not in words.sentence(row) + words.hint(row)


def test_without_names_before_the_policy_none_after_it_are_no_fault_of_the_policy() -> None:
    after = Round(9, NO_PORTS, False)
    assert judging.judge(Round(3, ALL_PORTS, False), after).code == "proof_apart"


def test_only_a_round_that_reached_every_port_is_a_control() -> None:
    half = Round(1, ALL_PORTS | {"tenant:2222": False}, True)
    assert judging.control([half]) is None
    assert judging.control([half, BEFORE]) == BEFORE


def test_a_log_that_is_not_the_programs_counts_for_nothing() -> None:
    good = json.dumps({"n": 1, "reached": NO_PORTS, "dns": True})
    evil = [
        "",
        "hello",
        "[]",
        "{}",
        '{"n": "x", "reached": {}, "dns": 1}',
        '{"n": 1, "reached": 5, "dns": 1}',
        "null",
    ]
    assert judging.rounds([*evil, good]) == [Round(1, NO_PORTS, True)]


def test_targets_are_what_a_pod_could_reach_and_never_the_pod_itself() -> None:
    def node(address: str) -> dict[str, Any]:
        return {"status": {"addresses": [{"type": "InternalIP", "address": address}]}}

    nodes: list[dict[str, Any]] = [node("10.0.0.5"), node("127.0.0.1"), {"status": {}}]
    found = judging.targets("10.1.1.1", nodes, ["203.0.113.7/32", "127.0.0.1/32", "10.9.0.0/16"])
    assert found["tenant:8888"] == ["10.1.1.1", 8888] and found["tenant:2222"] == ["10.1.1.1", 2222]
    assert found["metadata:169.254.169.254"] == ["169.254.169.254", 80]
    assert {name for name in found if name.startswith(("api", "node"))} == {
        "api:203.0.113.7:443", "api:203.0.113.7:6443", "node:10.0.0.5:10250", "node:10.0.0.5:22",
    }  # fmt: skip


def test_the_program_says_what_it_reaches() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        wanted = {"open": door.getsockname(), "closed": closed.getsockname()}
        wish = {"try": wanted, "resolve": "localhost", "seconds": 0.5}
        told = subprocess.run(
            [sys.executable, "-I", "-S", "-u", "-c", manifests.PROGRAM],
            env={"BERTH_PROOF": json.dumps(wish), "PATH": os.environ["PATH"]},
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout  # fmt: skip
    (only,) = judging.rounds(told.splitlines())
    assert only == Round(1, {"open": True, "closed": False}, True)


def test_its_namespaces_are_made_as_a_tenants_and_are_no_tenants() -> None:
    cluster, instance = Cluster(pod_cidrs=["10.1.0.0/16"]), uuid4()
    bodies = manifests.place("a", cluster, instance, policed=True)
    assert [body["kind"] for body in bodies] == ["Namespace", "ServiceAccount", "LimitRange", "NetworkPolicy"]
    assert bodies[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    opened = manifests.place("a", cluster, instance, policed=False)
    assert opened[:3] == bodies[:3] and opened[3]["spec"] == manifests.OPEN
    with pytest.raises(ValidationError):
        valid_slug(manifests.tenant("a", instance).slug)
    assert {body["metadata"]["namespace"] for body in manifests.policies(cluster, instance)} == (
        manifests.namespaces(instance)
    )


@pytest.mark.parametrize(
    ("state", "is_over"),
    [("Pending", False), ("Running", False), ("Failed", True), ("Succeeded", True)],
)
def test_a_pod_that_ended_is_not_waited_for(state: str, is_over: bool) -> None:
    assert steps.has_ended({"status": {"phase": state}}) is is_over
    assert not steps.has_ended(None)


def test_the_reason_of_a_pod_that_could_not_start_is_told() -> None:
    terminated = {"terminated": {"reason": "StartError", "message": 'exec: "python3": not found'}}
    pod = {"status": {"phase": "Failed", "containerStatuses": [{"state": terminated}]}}
    assert steps.said_about(pod) == 'exec: "python3": not found'
