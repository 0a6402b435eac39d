"""The official client, unmodified."""

from typing import Any

from kubernetes import client, config, watch

from tests.devcluster.cluster import DevCluster, pod


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
