"""Client libraries, unmodified: the official one, its informer, and lightkube list, watch and patch."""

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import lightkube
import pytest
from kubernetes import client, config, informer, watch
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Node
from lightkube.types import PatchType

from devcluster.testing.cluster import DevCluster, pod, stateful_set
from devcluster.testing.waiting import until


@pytest.fixture
def namespace(cluster: DevCluster) -> str:
    return cluster.fresh().rpartition("/")[2]


@pytest.fixture
def connection(cluster: DevCluster) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(cluster.kubeconfig)) as connection:  # type: ignore[no-untyped-call]
        yield connection


def test_the_official_client_lists_creates_and_watches(connection: client.ApiClient, namespace: str) -> None:
    api: Any = client.CoreV1Api(connection)
    assert [str(n.metadata and n.metadata.name) for n in api.list_node().items] == ["gpu-1", "gpu-2"]
    api.create_namespaced_pod(namespace, {"apiVersion": "v1", "kind": "Pod", **pod("p")})
    phases = []
    for event in watch.Watch().stream(  # type: ignore[no-untyped-call]
        api.list_namespaced_pod, namespace, timeout_seconds=20
    ):
        phases.append(event["object"].status.phase)
        if any(c.type == "Ready" and c.status == "True" for c in event["object"].status.conditions or []):
            break
    assert phases[-1] == "Running"


def test_the_official_client_patches_scales_and_pages(connection: client.ApiClient, namespace: str) -> None:
    apps: Any = client.AppsV1Api(connection)
    core: Any = client.CoreV1Api(connection)
    apps.create_namespaced_stateful_set(namespace, stateful_set("ws"))
    patched = apps.patch_namespaced_stateful_set("ws", namespace, {"metadata": {"labels": {"team": "a"}}})
    assert patched.metadata.labels == {"team": "a"}
    apps.patch_namespaced_stateful_set_scale("ws", namespace, {"spec": {"replicas": 3}})
    until(lambda: len(core.list_namespaced_pod(namespace, label_selector="app=ws").items) == 3)
    page = core.list_namespaced_pod(namespace, limit=2)
    rest = core.list_namespaced_pod(namespace, limit=2, _continue=page.metadata._continue)
    assert [p.metadata.name for p in page.items + rest.items] == ["ws-0", "ws-1", "ws-2"]


def test_the_official_clients_refusals_carry_the_servers_words(
    connection: client.ApiClient, namespace: str
) -> None:
    with pytest.raises(client.ApiException) as refused:
        client.CoreV1Api(connection).read_namespaced_pod("nope", namespace)
    assert refused.value.status == 404
    assert 'pods \\"nope\\" not found' in str(refused.value.body)


def test_the_official_informer_keeps_up(connection: client.ApiClient, namespace: str) -> None:
    api: Any = client.CoreV1Api(connection)
    seen: Any = informer.SharedInformer(  # type: ignore[no-untyped-call]
        api.list_namespaced_config_map, namespace=namespace
    )
    gone: list[str] = []
    seen.add_event_handler(informer.DELETED, lambda obj: gone.append(obj.metadata.name))
    seen.start()
    until(lambda: seen.cache.get_by_key(f"{namespace}/kube-root-ca.crt") is not None)

    def held() -> Any:
        return getattr(seen.cache.get_by_key(f"{namespace}/settings"), "data", None)

    api.create_namespaced_config_map(namespace, {"metadata": {"name": "settings"}, "data": {"a": "1"}})
    until(lambda: held() == {"a": "1"})
    api.patch_namespaced_config_map("settings", namespace, {"data": {"a": "2"}})
    until(lambda: held() == {"a": "2"})
    api.delete_namespaced_config_map("settings", namespace)
    until(lambda: gone == ["settings"])
    # It stops only at the next event: send events until it has.
    stopped = threading.Event()

    def go_on() -> None:
        for number in itertools.count():
            if stopped.wait(0.2):
                return
            api.create_namespaced_config_map(namespace, {"metadata": {"name": f"more-{number}"}})

    more = threading.Thread(target=go_on)
    more.start()
    seen.stop()
    stopped.set()
    more.join()


def test_lightkube_lists_watches_patches_and_applies(cluster: DevCluster, namespace: str) -> None:
    settings = lightkube.KubeConfig.from_file(cluster.kubeconfig)
    kube = lightkube.Client(settings, namespace=namespace, field_manager="lightkube")
    assert [n.metadata.name for n in kube.list(Node) if n.metadata] == ["gpu-1", "gpu-2"]
    made = kube.create(ConfigMap(metadata=ObjectMeta(name="settings"), data={"a": "1"}))
    assert made.metadata is not None
    kube.patch(ConfigMap, "settings", {"data": {"b": "2"}}, patch_type=PatchType.MERGE)
    kube.apply(ConfigMap(metadata=ObjectMeta(name="settings"), data={"c": "3"}))
    changes = kube.watch(ConfigMap, resource_version=made.metadata.resourceVersion, server_timeout=20)
    found = [next(changes) for _ in range(2)]
    assert [(kind, obj.data) for kind, obj in found] == [
        ("MODIFIED", {"a": "1", "b": "2"}),
        ("MODIFIED", {"a": "1", "b": "2", "c": "3"}),
    ]
    with pytest.raises(lightkube.ApiError) as refused:
        kube.apply(ConfigMap(metadata=ObjectMeta(name="settings"), data={"c": "4"}), field_manager="another")
    assert refused.value.status.code == 409
    kube.delete(ConfigMap, "settings")
