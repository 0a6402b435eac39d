"""kubectl waits: rollouts of sets and deployments, and conditions."""

import json

import pytest

from devcluster.testing.cluster import stateful_set
from helpers.kubectl import Kubectl, config_map, needs_kubectl

pytestmark = needs_kubectl


def deployment() -> dict[str, object]:
    workload = stateful_set("ws")
    spec = {k: v for k, v in workload["spec"].items() if k != "serviceName"}
    return workload | {"kind": "Deployment", "spec": spec}


def image(kubectl: Kubectl, workload: str) -> str:
    return kubectl("get", workload, "-o", "jsonpath={.spec.template.spec.containers[0].image}")


def test_rollout_status_waits_for_a_set(kubectl: Kubectl) -> None:
    kubectl.apply(stateful_set("ws", replicas=2))
    told = kubectl("rollout", "status", "statefulset/ws", "--timeout=30s")
    assert told.endswith("partitioned roll out complete: 2 new pods have been updated...\n")


@pytest.mark.slow
def test_rollout_status_gives_up_in_time(kubectl: Kubectl) -> None:
    never = stateful_set("never")
    never["spec"]["template"]["spec"]["nodeSelector"] = {"no": "such"}
    kubectl.apply(never)
    told = kubectl.fails("rollout", "status", "statefulset/never", "--timeout=1s")
    assert "timed out waiting for the condition" in told


def test_rollout_restart_makes_every_pod_anew(kubectl: Kubectl) -> None:
    kubectl.apply(stateful_set("ws"))
    kubectl("rollout", "status", "statefulset/ws", "--timeout=30s")
    uid = kubectl("get", "pod", "ws-0", "-o", "jsonpath={.metadata.uid}")
    assert kubectl("rollout", "restart", "statefulset/ws") == "statefulset.apps/ws restarted\n"
    kubectl("rollout", "status", "statefulset/ws", "--timeout=30s")
    assert kubectl("get", "pod", "ws-0", "-o", "jsonpath={.metadata.uid}") != uid


@pytest.mark.parametrize("kind", ["statefulset", "deployment"])
def test_rollout_history_and_undo(kubectl: Kubectl, kind: str) -> None:
    workload = f"{kind}/ws"
    kubectl.apply(stateful_set("ws") if kind == "statefulset" else deployment())
    kubectl("rollout", "status", workload, "--timeout=30s")
    kubectl("set", "image", workload, "main=local/other:2")
    kubectl("annotate", workload, "kubernetes.io/change-cause=newer", "--overwrite")
    kubectl("rollout", "status", workload, "--timeout=30s")
    history = kubectl("rollout", "history", workload).splitlines()
    assert history[1].split() == ["REVISION", "CHANGE-CAUSE"]
    assert [line.split()[0] for line in history[2:] if line] == ["1", "2"]
    assert "local/other:2" in kubectl("rollout", "history", workload, "--revision=2")
    kubectl("rollout", "undo", workload)
    kubectl("rollout", "status", workload, "--timeout=30s")
    assert image(kubectl, workload) == "local/none:1"


def test_a_deployment_pauses_and_resumes(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    told = kubectl("rollout", "status", "deployment/ws", "--timeout=30s")
    assert told.endswith('deployment "ws" successfully rolled out\n')
    kubectl("rollout", "pause", "deployment/ws")
    kubectl("set", "image", "deployment/ws", "main=local/other:2")
    assert "already paused" in kubectl.fails("rollout", "pause", "deployment/ws")
    kubectl("rollout", "resume", "deployment/ws")
    kubectl("rollout", "status", "deployment/ws", "--timeout=30s")
    items = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    kept = [p for p in items if "deletionTimestamp" not in p["metadata"]]
    assert [p["spec"]["containers"][0]["image"] for p in kept] == ["local/other:2"]


@pytest.mark.slow
def test_wait_for_a_condition_a_value_and_an_end(kubectl: Kubectl) -> None:
    kubectl.apply(stateful_set("ws"))
    kubectl("wait", "--for=create", "pod/ws-0", "--timeout=30s")
    assert kubectl("wait", "--for=condition=Ready", "pod/ws-0", "--timeout=30s") == (
        "pod/ws-0 condition met\n"
    )
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod", "-l", "app=ws", "--timeout=30s")
    kubectl("scale", "statefulset/ws", "--replicas=0")
    kubectl("wait", "--for=delete", "pod/ws-0", "--timeout=30s")
    kubectl.apply(config_map(a="1"))
    told = kubectl.fails("wait", "--for=delete", "configmap/settings", "--timeout=1s")
    assert "timed out waiting for the condition on configmaps/settings" in told
