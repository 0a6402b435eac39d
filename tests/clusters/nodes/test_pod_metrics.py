"""Tests that usage of pods is read from metrics-server and announced, and that missing figures are tolerated."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from clusters import signals
from clusters.connections import connect
from clusters.labels import instance_selector
from clusters.models import Cluster
from clusters.nodes import pod_metrics
from clusters.nodes.pod_metrics import EVERY_SECONDS, SELDOM_SECONDS, Measured, PodMetrics, measured, read
from devcluster.testing.cluster import DevCluster, pod, running
from devcluster.testing.waiting import until
from tests.clusters.stub import Answer, Stub, status, text
from tests.own_rights import OwnRights

pytestmark = pytest.mark.django_db
AT = datetime(2026, 1, 5, 10, 0, 12, tzinfo=UTC)


def usage(name: str = "ws-0", *containers: tuple[str, str], **changes: Any) -> dict[str, Any]:
    """Return a pod's metrics as metrics-server 0.7 writes them: without kind, created when asked for."""
    told = [
        {"name": f"c{number}", "usage": {"cpu": cpu, "memory": memory}}
        for number, (cpu, memory) in enumerate(containers or [("3m", "2Mi")])
    ]
    metadata = {"name": name, "namespace": "berth-demo", "creationTimestamp": "2026-01-05T10:00:20Z"}
    body = {
        "metadata": metadata,
        "timestamp": "2026-01-05T10:00:12Z",
        "window": "15.023s",
        "containers": told,
    }
    return body | changes


def answer(*items: dict[str, Any]) -> Answer:
    """Return a list as metrics-server sends it: with metadata that has no resource version."""
    body = {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items}
    return lambda request: request.json(200, body)


NOT_INSTALLED = text(404, b"404 page not found\n")
NOT_READY = status(503, "ServiceUnavailable", "the server is currently unable to handle the request")


@pytest.fixture
def server(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Stub:
    monkeypatch.setattr(pod_metrics, "api_for", lambda cluster: stub.api)
    return stub


@pytest.fixture
def told() -> Iterator[list[list[Measured]]]:
    heard: list[list[Measured]] = []

    def hear(measured: list[Measured], **_: object) -> None:
        heard.append(measured)

    signals.pods_measured.connect(hear)
    yield heard
    signals.pods_measured.disconnect(hear)


@pytest.fixture
def thread() -> PodMetrics:
    return PodMetrics(Cluster(slug="main"))


def test_containers_count_together() -> None:
    body = usage("ws-0", ("1250m", "900Mi"), ("2500000n", "128Ki"))
    expected = Measured("berth-demo", "ws-0", AT, 1253, 900 * 2**20 + 128 * 2**10)
    assert measured(body) == expected


@pytest.mark.parametrize(
    "broken",
    [
        usage(containers=[]),
        usage(containers=None),
        usage(containers=[{"name": "a", "usage": {"cpu": "1"}}]),
        usage("ws-0", ("1", "1Gi"), ("much", "1Gi")),
        usage(timestamp=None),
        usage(timestamp="2026-01-05T10:00:12"),
        usage(metadata={"name": "ws-0"}),
    ],
    ids=["no containers", "null", "no memory", "no quantity", "no time", "no zone", "no namespace"],
)
def test_what_cannot_be_read_whole_is_no_figure(broken: dict[str, Any]) -> None:
    assert measured(broken) is None


def test_all_our_pods_are_asked_for_at_once(server: Stub) -> None:
    server.answers = [answer(usage("a"), usage("b", containers=[]), usage("c"))]
    assert [pod.pod for pod in read(server.api)] == ["a", "c"]
    ours = ",".join(f"{name}={value}" for name, value in instance_selector().items())
    assert [(method, query["labelSelector"]) for method, query in server.requests] == [("GET", ours)]


def test_what_was_read_is_told(server: Stub, thread: PodMetrics, told: list[list[Measured]]) -> None:
    server.answers = [answer(usage())]
    assert thread.step() == EVERY_SECONDS
    assert told == [[Measured("berth-demo", "ws-0", AT, 3, 2 * 2**20)]]


@pytest.mark.django_db(transaction=True)
def test_a_cluster_without_metrics_is_asked_less_often(
    server: Stub, thread: PodMetrics, told: list[list[Measured]]
) -> None:
    thread._backoff.jitter = lambda: 1.0
    server.answers = [NOT_INSTALLED]
    assert [thread.step() for _ in range(6)] == [15, 30, 60, 120, 240, SELDOM_SECONDS]
    assert told == []
    server.answers = [answer(usage()), NOT_INSTALLED]
    assert [thread.step(), thread.step()] == [EVERY_SECONDS, EVERY_SECONDS]
    assert len(told) == 1


def test_one_that_is_not_ready_is_asked_again(server: Stub, thread: PodMetrics) -> None:
    server.answers = [NOT_READY]
    assert 0 < thread.step() <= EVERY_SECONDS


def test_unstored_figures_are_a_gap(server: Stub, thread: PodMetrics) -> None:
    def fail(**_: object) -> None:
        raise OperationalError("the database is away")

    server.answers = [answer(usage())]
    signals.pods_measured.connect(fail)
    try:
        assert thread.step() == EVERY_SECONDS
    finally:
        signals.pods_measured.disconnect(fail)


@pytest.mark.django_db(transaction=True)
def test_a_fault_does_not_end_the_thread(
    thread: PodMetrics, monkeypatch: pytest.MonkeyPatch, told: list[list[Measured]]
) -> None:
    thread._backoff.shortest_seconds = 0.01
    faults = [ValueError("a fault")]

    def odd(api: object) -> list[Measured]:
        if faults:
            raise faults.pop()
        thread.stopped.set()
        return []

    monkeypatch.setattr(pod_metrics, "api_for", lambda cluster: None)
    monkeypatch.setattr(pod_metrics, "read", odd)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert told == [[]]


NODES = """
nodes: [{name: here, cpu: 8, memory: 64Gi}]
played: {start_seconds: 0, ready_seconds: 0}
metrics: {every_seconds: 0.2}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DevCluster]:
    yield from running(tmp_path, "--pods", "played", nodes=NODES)


def test_usage_is_read_with_berths_own_rights(cluster: DevCluster, tmp_path: Path) -> None:
    rights = OwnRights(cluster.kubeconfig, tmp_path)
    api = connect(Cluster(slug="lab", connection="kubeconfig", kubeconfig_path=str(rights.kubeconfig)))
    space = cluster.fresh()
    for name, labels in (("ours", instance_selector()), ("others", {"app": "other"})):
        body = pod(name)
        body["metadata"]["labels"] = labels
        body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2", "memory": "1Gi"}}
        cluster.create(f"{space}/pods", body)
    until(lambda: bool(read(api)), 30)
    found = read(api)
    assert [(one.namespace, one.pod) for one in found] == [(space.rpartition("/")[2], "ours")]
    assert 0 < found[0].cpu_millicores < 2000
    assert 0 < found[0].memory_bytes < 2**30
