"""Rules for parts of a cluster: crashing, not ready, missing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.explain import BY_CODE, sentence
from clusters.models import Node, PartPod
from monitoring.health.rules import FOR_ADMINS
from monitoring.parts import rules
from tests.monitoring.parts.rows import NOW, ago, everywhere, node, nodes, part


def found(pods: list[PartPod], on: list[Node], **values: Any) -> list[tuple[str, str, str]]:
    told = rules.verdicts(rules.Seen(NOW, pods, on, **values))
    return [(verdict.code, verdict.subject, verdict.data.get("where", "")) for verdict in told]


def test_what_runs_everywhere_is_no_problem() -> None:
    on = nodes(5)
    assert found([*everywhere("Calico", on), *everywhere("NVIDIA device plugin", on)], on) == []


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        (part("CoreDNS", detail="CrashLoopBackOff: back-off", ready=False), "part_crashing"),
        (part("CoreDNS", restarts=3, crashed_at=ago(minutes=4)), "part_crashing"),
        (part("CoreDNS", restarts=9, crashed_at=ago(hours=1)), None),
        (part("CoreDNS", restarts=1, crashed_at=ago(minutes=1)), None),
        (part("CoreDNS", ready=False, unready_since=ago(minutes=3)), "part_not_ready"),
        (part("CoreDNS", ready=False, unready_since=ago(minutes=2)), None),
        (
            part("CoreDNS", "", ready=False, unready_since=ago(minutes=9), detail="0/2 nodes"),
            "part_not_ready",
        ),
    ],
)
def test_a_crash_again_and_again_and_a_lasting_lack_of_readiness_are(pod: PartPod, code: str | None) -> None:
    assert [one for one, *_ in found([pod], nodes(1))] == ([code] if code else [])


def test_the_same_on_forty_nodes_is_one_problem_that_names_them() -> None:
    on = nodes(40)
    pods = everywhere("Calico", on, ready=False, unready_since=ago(minutes=5), detail="cannot reach the API")
    [verdict] = rules.verdicts(rules.Seen(NOW, pods, on))
    assert verdict.data["where"].endswith("(+32)")
    assert len(verdict.data["on"]) == 40
    assert verdict.data["raw"] == "cannot reach the API"


def test_a_node_that_is_away_speaks_for_itself() -> None:
    on = [node("gpu-0", ready=False)]
    assert found([part("Calico", ready=False, unready_since=ago(minutes=5))], on) == []


def test_a_set_that_misses_a_few_nodes_is_a_problem() -> None:
    on = nodes(5)
    assert found(everywhere("Calico", on[:4]), on) == [("part_missing", "Calico", "gpu-4")]


def test_one_that_is_on_a_few_nodes_only_is_meant_to_be() -> None:
    on = nodes(10)
    assert found([*everywhere("Longhorn", on[:4]), *everywhere("Calico", on[:2])], on) == []


def test_a_device_plugin_belongs_on_nodes_with_gpus_alone() -> None:
    on = [*nodes(4), node("cpu-1", labels={}), node("cpu-2", labels={})]
    assert found(everywhere("NVIDIA device plugin", on[:4]), on) == []
    assert found(everywhere("NVIDIA device plugin", on[:3]), on) == [
        ("part_missing", "NVIDIA device plugin", "gpu-3")
    ]


def test_two_sets_of_one_part_may_divide_the_nodes() -> None:
    on = nodes(6)
    pods = [
        *everywhere("NVIDIA device plugin", on[:3], owner="DaemonSet/mig"),
        *everywhere("NVIDIA device plugin", on[3:], owner="DaemonSet/whole"),
    ]
    assert found(pods, on) == []


@pytest.mark.parametrize(
    ("owner", "codes"),
    [("DaemonSet/hami-device-plugin", ["part_absent"]), ("ReplicaSet/hami-scheduler", [])],
)
def test_a_pool_that_shares_by_hami_needs_its_scheduler(owner: str, codes: list[str]) -> None:
    told = found([part("HAMi", owner=owner)], nodes(1), uses_hami=True)
    assert [code for code, *_ in told] == codes


def test_where_no_pod_of_hami_is_known_nothing_is_said_of_it() -> None:
    assert found(everywhere("Calico", nodes(3)), nodes(3), uses_hami=True) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 9)), max_size=12))
def test_each_problem_is_told_once_and_to_admins_alone(seen: list[tuple[int, bool, int]]) -> None:
    pods = [
        part(
            "Calico", f"gpu-{number}", ready=ready, restarts=count,
            unready_since=None if ready else ago(minutes=count), crashed_at=ago(minutes=count),
        )
        for number, ready, count in seen
    ]  # fmt: skip
    told = rules.verdicts(rules.Seen(NOW, pods, nodes(6), uses_hami=True))
    assert len({verdict.key for verdict in told}) == len(told)
    assert {verdict.code for verdict in told} <= FOR_ADMINS & BY_CODE.keys()
    assert not any(verdict.out for verdict in told)
    assert all("?" not in sentence(verdict.code, verdict.data) for verdict in told)
