"""The official client, unmodified."""

import shutil
import subprocess
from typing import Any

import pytest
from kubernetes import client, config, watch

from tests.devcluster.cluster import DevCluster, pod, stateful_set


def test_it_lists_creates_and_watches(cluster: DevCluster) -> None:
    connection = config.new_client_from_config(str(cluster.kubeconfig))  # type: ignore[no-untyped-call]
    api = client.CoreV1Api(connection)
    assert [str(n.metadata and n.metadata.name) for n in api.list_node().items] == ["gpu-1", "gpu-2"]
    cluster.namespace("client")
    body: Any = {"apiVersion": "v1", "kind": "Pod", **pod("p")}
    api.create_namespaced_pod("client", body)
    phases = []
    for event in watch.Watch().stream(  # type: ignore[no-untyped-call]
        api.list_namespaced_pod, "client", timeout_seconds=10
    ):
        phases.append(event["object"].status.phase)
        if any(c.type == "Ready" and c.status == "True" for c in event["object"].status.conditions or []):
            break
    assert phases[-1] == "Running"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on this machine")
def test_kubectl_applies_gets_describes_and_deletes(cluster: DevCluster) -> None:
    cluster.namespace("kubectl")

    def kubectl(*arguments: str, text: str = "") -> str:
        command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "--namespace", "kubectl", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    manifest = str(stateful_set("ws")).replace("'", '"')
    assert "statefulset.apps/ws created" in kubectl("apply", "-f", "-", text=manifest)
    kubectl("wait", "--for=condition=Ready", "pod/ws-0", "--timeout=10s")
    assert "1/1" in kubectl("get", "pods")
    assert "Successfully assigned kubectl/ws-0 to gpu-" in kubectl("describe", "pod", "ws-0")
    kubectl("scale", "statefulset", "ws", "--replicas=0")
    kubectl("wait", "--for=delete", "pod/ws-0", "--timeout=10s")
    kubectl("delete", "statefulset", "ws", "--timeout=10s")
