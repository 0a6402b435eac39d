"""kubectl and nodes: cordon, drain, taint."""

from devcluster.testing.cluster import pod, stateful_set
from helpers.kubectl import Kubectl, columns, needs_kubectl

pytestmark = needs_kubectl


def bound(name: str, **spec: object) -> dict[str, object]:
    """Return a pod that may run on gpu-1 only."""
    selector = {"kubernetes.io/hostname": "gpu-1"}
    return {"apiVersion": "v1", "kind": "Pod", **pod(name, nodeSelector=selector, **spec)}


def test_a_cordoned_node_takes_no_pods_until_it_is_uncordoned(kubectl: Kubectl) -> None:
    assert kubectl("cordon", "gpu-1") == "node/gpu-1 cordoned\n"
    assert columns(kubectl("get", "node", "gpu-1"))[1][1] == "Ready,SchedulingDisabled"
    kubectl.apply(bound("waits"))
    kubectl("wait", "--for=condition=PodScheduled=false", "pod/waits", "--timeout=30s")
    why = kubectl("get", "pod", "waits", "-o", "jsonpath={.status.conditions[*].message}")
    assert "1 node(s) were unschedulable" in why
    assert kubectl("uncordon", "gpu-1") == "node/gpu-1 uncordoned\n"
    kubectl("wait", "--for=condition=Ready", "pod/waits", "--timeout=30s")


def test_a_taint_keeps_away_who_does_not_tolerate_it(kubectl: Kubectl) -> None:
    assert kubectl("taint", "node", "gpu-1", "job=mine:NoSchedule") == "node/gpu-1 tainted\n"
    kubectl.apply(bound("waits"), bound("comes", tolerations=[{"key": "job", "operator": "Exists"}]))
    kubectl("wait", "--for=condition=Ready", "pod/comes", "--timeout=30s")
    kubectl("wait", "--for=condition=PodScheduled=false", "pod/waits", "--timeout=30s")
    assert "job=mine:NoSchedule" in kubectl("describe", "node", "gpu-1")
    assert kubectl("taint", "node", "gpu-1", "job-") == "node/gpu-1 untainted\n"
    kubectl("wait", "--for=condition=Ready", "pod/waits", "--timeout=30s")


def test_drain_evicts_and_the_set_makes_its_pod_elsewhere(kubectl: Kubectl) -> None:
    kubectl.apply(stateful_set("ws"))
    kubectl("rollout", "status", "statefulset/ws", "--timeout=30s")
    node = kubectl("get", "pod", "ws-0", "-o", "jsonpath={.spec.nodeName}")
    drained = kubectl("drain", node, "--ignore-daemonsets", "--force", "--timeout=60s")
    assert (
        f"evicting pod {kubectl.namespace}/ws-0" in drained + kubectl.namespace or "ws-0 evicted" in drained
    )
    kubectl("rollout", "status", "statefulset/ws", "--timeout=30s")
    assert kubectl("get", "pod", "ws-0", "-o", "jsonpath={.spec.nodeName}") != node
    kubectl("uncordon", node)
