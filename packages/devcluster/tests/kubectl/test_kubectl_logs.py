"""kubectl and running pods: logs, followed and of the container before, and a command inside."""

import pytest

from devcluster.testing.cluster import DevCluster
from devcluster.testing.kube import Obj
from devcluster.testing.waiting import until
from helpers.kubectl import Kubectl, needs_kubectl, until_line
from helpers.shells import PROCESSES, process_pods

pytestmark = [needs_kubectl, process_pods]
ARGUMENTS = PROCESSES
# A pod that crashed again stays down: the pause is longer than the tests.
NODES = "nodes: [{name: here, cpu: 8, memory: 64Gi}]\nback_off: {first_seconds: 600, most_seconds: 600}"
SAYS = "echo one; echo two; while [ ! -e /tmp/more ]; do sleep 0.1; done; echo three; exec sleep inf"
CRASHES = "echo run; exit 3"


def pod(name: str, script: str, **spec: object) -> Obj:
    container = {"name": "main", "image": "local/venv:1", "command": ["sh", "-c", script]}
    body = {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"who": name}},
        "spec": body,
    }


@pytest.fixture(scope="module")
def kubectl(cluster: DevCluster, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    cluster.namespace("running")
    kubectl = Kubectl(cluster.kubeconfig, tmp_path_factory.mktemp("home"), "running")
    kubectl.apply(pod("says", SAYS), pod("crashes", CRASHES))
    kubectl("wait", "--for=condition=Ready", "pod/says", "--timeout=60s")
    until(lambda: "two" in kubectl("logs", "says"))
    return kubectl


def test_logs_are_what_the_container_wrote(kubectl: Kubectl) -> None:
    lines = kubectl("logs", "says").splitlines()
    assert lines[:2] == ["one", "two"]
    assert kubectl("logs", "says", "--tail=1").splitlines()[-1] in ("two", "three")
    assert kubectl("logs", "-l", "who=says", "--prefix").startswith("[pod/says/main] ")
    stamped = kubectl("logs", "says", "--timestamps").splitlines()[0]
    assert stamped[4] == "-"
    assert stamped.endswith("Z one")


@pytest.mark.slow
def test_logs_follow_until_the_container_ends(kubectl: Kubectl) -> None:
    kubectl.apply(pod("counts", "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i; sleep 0.1; done",
                      restartPolicy="Never"))  # fmt: skip
    kubectl("wait", "--for=jsonpath={.status.startTime}", "pod/counts", "--timeout=30s")
    kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].started}", "pod/counts", "--timeout=30s")
    following = kubectl.begin("logs", "-f", "counts")
    try:
        until_line(following, "line 1")
        until_line(following, "line 30")
        assert following.wait(60) == 0
    finally:
        following.kill()
        following.wait()


def test_logs_of_the_container_before_this_one(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}=3",
            "pod/crashes", "--timeout=60s")  # fmt: skip
    assert kubectl("logs", "crashes", "--previous") == "run\n"
    told = kubectl.fails("logs", "says", "--previous")
    assert 'previous terminated container "main" in pod "says" not found' in told


def test_logs_of_what_is_not_there(kubectl: Kubectl) -> None:
    assert '(NotFound): pods "nope" not found' in kubectl.fails("logs", "nope")
    assert "container nope is not valid for pod says" in kubectl.fails("logs", "says", "-c", "nope")


def test_a_crashing_pod_is_told_as_one(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff",
            "pod/crashes", "--timeout=60s")  # fmt: skip
    row = kubectl("get", "pod", "crashes").splitlines()[1]
    assert "CrashLoopBackOff" in row
    assert "ago)" in row
    told = kubectl("describe", "pod", "crashes")
    assert "Exit Code:    3" in told
    assert "Back-off restarting failed container main in pod crashes" in told
