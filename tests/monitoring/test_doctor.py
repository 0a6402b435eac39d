"""Doctor's findings about node agents: missing, silent, simulated, or different from the labels."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Cluster, Node, PartPod
from monitoring import doctor
from monitoring.models import AgentState, Validation
from tests.cast import Cast
from tests.monitoring.health.ward import hears_for_long

pytestmark = pytest.mark.django_db

DRIVER = "nvidia.com/cuda.driver-version.full"


def agent(cluster: Cluster, node: str, **values: Any) -> None:
    now = timezone.now()
    AgentState.objects.create(
        cluster=cluster,
        node=node,
        agent=node,
        **{"taken_at": now, "seen_at": now, "driver_version": "550"} | values,
    )


def said(cluster: Cluster) -> list[tuple[str, str]]:
    return [(finding.level.value, finding.message) for finding in doctor.findings_about(cluster)]


def test_nodes_with_gpus_and_no_agent_are_named(cast: Cast) -> None:
    agent(cast.cluster, "gpu-1")
    text = "Nothing monitors the GPUs of gpu-2: no agent has reported them."
    assert said(cast.cluster) == [("warn", text)]
    cast.cluster.prometheus_url = "http://127.0.0.1:1"
    no_agent, no_answer = said(cast.cluster)
    assert no_agent == ("ok", "No agent runs on gpu-2; figures come from Prometheus.")
    assert no_answer == ("fail", "Prometheus cannot be asked: Connection refused.")


def test_agents_on_all_nodes_are_ok_and_simulated_ones_are_named(cast: Cast) -> None:
    agent(cast.cluster, "gpu-1")
    agent(cast.cluster, "gpu-2", is_simulated=True)
    assert said(cast.cluster) == [
        ("ok", "Every node with GPUs has an agent that reports them."),
        ("ok", "The agents of gpu-2 are simulated: there are no GPUs."),
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"seen_at": timezone.now() - timedelta(days=1)}, "The agents of gpu-2 no longer report."),
        (
            {
                "troubles": [
                    {"code": "library_missing", "detail": ""},
                    {"code": "kubelet_silent", "detail": ""},
                ]
            },
            "The agent of gpu-2 sees no GPU: library_missing.",
        ),
        ({"driver_version": "535"}, "NVIDIA drivers differ: most nodes have 550, but 535 on gpu-2."),
        ({"taken_at": timezone.now() + timedelta(days=1)}, "The clocks of gpu-2 differ from Berth's"),
    ],
    ids=["silent", "blind", "another driver", "another clock"],
)
def test_a_problem_of_one_agent_is_a_warning(cast: Cast, values: dict[str, Any], text: str) -> None:
    hears_for_long()
    Node.objects.create(cluster=cast.cluster, name="gpu-0", allocatable={"nvidia.com/gpu": 1})
    agent(cast.cluster, "gpu-0")
    agent(cast.cluster, "gpu-1")
    agent(cast.cluster, "gpu-2", **values)
    assert [message for level, message in said(cast.cluster) if level == "warn" and message.startswith(text)]


def test_labels_older_than_the_driver_and_failed_tests_are_warnings(cast: Cast) -> None:
    Node.objects.filter(name="gpu-1").update(labels={DRIVER: "535"})
    agent(cast.cluster, "gpu-1")
    agent(cast.cluster, "gpu-2")
    Validation.objects.create(
        cluster=cast.cluster, node="gpu-2", outcome="failed", ended_at=timezone.now(), image="i"
    )
    warnings = [message for level, message in said(cast.cluster) if level == "warn"]
    assert warnings == [
        "The labels of gpu-1 name another driver version than the one in use.",
        "The last test of the GPUs of gpu-2 failed: nothing new gets them.",
    ]


def test_parts_and_versions_are_told(cast: Cast) -> None:
    def about(words: str) -> list[str]:
        return [level for level, message in said(cast.cluster) if words in message]

    assert about("CoreDNS") == []
    pod = {"uid": "1", "namespace": "kube-system", "name": "coredns", "node": "gpu-1", "version": "v1.11.1"}
    PartPod.objects.create(cluster=cast.cluster, part="CoreDNS", ready=True, **pod)
    assert about("CoreDNS v1.11.1") == ["ok"]
    toolkit = {**pod, "uid": "2", "version": "v1.16.1"}
    PartPod.objects.create(cluster=cast.cluster, part="NVIDIA container toolkit", ready=True, **toolkit)
    assert about("CVE-2025-23266") == ["warn"]
    assert about("CoreDNS") == []
