"""Tests of the whole watch against a real API: rows follow the cluster, signals report changes, outages heal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections

from clusters import signals
from clusters.api import Api
from clusters.labels import RUN, instance_selector
from clusters.models import Cluster, Installation, Node, PartPod, PodUsage, Watcher
from clusters.watch.announcements import Announcements
from clusters.watch.fleet import Fleet
from clusters.watch.watcher import is_relevant_event
from devcluster.testing.kube import Kube
from devcluster.testing.waiting import until

Heard = list[tuple[str, dict[str, Any]]]  # name and arguments of each signal that was sent
RUN_ID = "5f6a1f3e-0000-4000-8000-000000000002"
KINDS = {"Node", "Pod", "Event", "ConfigMap", "Service"}


@pytest.fixture(autouse=True)
def installation(transactional_db: None) -> Installation:
    return Installation.objects.get()


@pytest.fixture
def cluster(reached_cluster: Cluster) -> Cluster:
    reached_cluster.save()
    return reached_cluster


@pytest.fixture
def heard() -> Iterator[Heard]:
    told: Heard = []
    receivers = []
    for name in ("objects_changed", "capacity_changed", "relisted", "tick", "pods_measured"):

        def receive(name: str = name, **arguments: Any) -> None:
            told.append((name, arguments))

        getattr(signals, name).connect(receive)
        receivers.append((name, receive))
    yield told
    for name, receive in receivers:
        getattr(signals, name).disconnect(receive)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with running() as fleet:
        yield fleet


@contextmanager
def running() -> Iterator[Fleet]:
    fleet = Fleet()
    stopped = threading.Event()

    def lead() -> None:
        while not stopped.is_set():
            fleet.step()
        fleet.stop()
        connections.close_all()

    thread = threading.Thread(target=lead)
    thread.start()
    try:
        yield fleet
    finally:
        stopped.set()
        thread.join(60)
        assert not thread.is_alive()
        until(lambda: not watching())  # otherwise they would write to the next test's rows


def watching() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(("real/", "lost/"))]


def pod(namespace: str, name: str, labels: dict[str, str]) -> dict[str, Any]:
    limits = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "main", "image": "local/none:1", "resources": {"limits": limits}}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def changes(heard: Heard, kind: str) -> list[tuple[str, str]]:
    return [
        (step.change, step.body["metadata"]["name"])
        for name, told in list(heard)
        if name == "objects_changed"
        for step in told["changes"]
        if step.body["kind"] == kind
    ]


def test_usage_of_pods_is_read_beside_the_watch(
    api: Api, cluster: Cluster, heard: Heard, fleet: Fleet
) -> None:
    if "metrics.k8s.io" not in api.groups():
        pytest.skip("this cluster has no metrics-server")
    until(lambda: [told["cluster"] for name, told in list(heard) if name == "pods_measured"] == [cluster])


def test_rows_follow_the_cluster(
    cluster: Cluster, api: Api, namespace: str, heard: Heard, fleet: Fleet
) -> None:
    until(lambda: [name for name, __ in heard].count("relisted"))
    assert Node.objects.filter(cluster=cluster, ready=True).count() == len(api.list("Node"))
    cluster.refresh_from_db()
    assert cluster.version.startswith("v1.")
    until(lambda: {row.kind for row in Watcher.objects.all()} >= KINDS)

    api.create(pod(namespace, "foreign", {}))
    api.create(pod(namespace, "ours", {**instance_selector(), RUN: RUN_ID}))
    until(lambda: PodUsage.objects.filter(namespace=namespace).count() == 2)
    runs = {row.name: str(row.run) for row in PodUsage.objects.filter(namespace=namespace)}
    assert runs == {"foreign": "None", "ours": RUN_ID}
    until(lambda: "capacity_changed" in [name for name, __ in heard])
    until(lambda: "ours" in [name for __, name in changes(heard, "Pod")])
    assert not [name for __, name in changes(heard, "Pod") if name == "foreign"]

    for name in ("foreign", "ours"):
        api.delete("Pod", namespace, name, grace_seconds=0)
    until(lambda: not PodUsage.objects.filter(namespace=namespace).exists())
    until(lambda: ("DELETED", "ours") in changes(heard, "Pod"))


@pytest.mark.slow
def test_a_pod_of_a_part_has_a_row_until_it_goes_and_a_tenants_has_none(
    cluster: Cluster, api: Api, namespace: str, fleet: Fleet
) -> None:
    system = f"system-{uuid.uuid4().hex[:8]}"
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system}})
    for where, name, chosen in (
        (system, "coredns-1", {}),
        (system, "coredns-2", {"lab": "nowhere"}),
        (namespace, "coredns-1", {}),
    ):
        body = pod(where, name, {})
        body["spec"] |= {"nodeSelector": chosen}
        body["spec"]["containers"][0]["image"] = "registry.k8s.io/coredns/coredns:v1.11.1"
        api.create(body)
    until(lambda: PartPod.objects.filter(ready=True).exists())
    until(lambda: PartPod.objects.filter(ready=False, detail__contains="nodes are available").exists())
    rows = {row.name: row for row in PartPod.objects.filter(part="CoreDNS", namespace=system)}
    assert PartPod.objects.count() == len(rows) == 2
    assert (rows["coredns-1"].version, bool(rows["coredns-1"].node)) == ("v1.11.1", True)
    assert rows["coredns-2"].unready_since
    for name in rows:
        api.delete("Pod", system, name, grace_seconds=0)
    until(lambda: not PartPod.objects.exists())
    api.delete("Namespace", "", system)


@pytest.mark.slow
def test_the_first_lists_are_one_relist(
    cluster: Cluster, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No second tick, however long the lists take.
    monkeypatch.setattr("clusters.watch.fleet.TICK_SECONDS", 600)
    with running():
        until(lambda: [name for name, __ in heard].count("relisted"))
        until(lambda: {row.kind for row in Watcher.objects.all()} >= KINDS)
    assert [name for name, __ in heard].count("relisted") == 1
    assert [name for name, __ in heard].count("tick") == 1


def test_an_unstored_announcement_is_sent_again(heard: Heard) -> None:
    failures = [OperationalError("the database system is shutting down")]

    def fail_once(**_: Any) -> None:
        if failures:
            raise failures.pop()

    announcements = Announcements()
    announcements.add(signals.relisted, Cluster(slug="any"))
    signals.relisted.connect(fail_once)
    for _ in range(3):
        announcements.send_pending(wait_seconds=0)
    signals.relisted.disconnect(fail_once)
    assert [name for name, __ in heard] == ["relisted", "relisted"]


@pytest.mark.slow
def test_an_unreachable_cluster_stops_no_other(
    cluster: Cluster, kubeconfig: str, tmp_path: Path, fleet: Fleet
) -> None:
    path = tmp_path / "kubeconfig"
    row = Cluster.objects.create(
        slug="lost", name="Lost", connection=Cluster.Connection.KUBECONFIG, kubeconfig_path=str(path)
    )
    until(lambda: Cluster.objects.filter(slug="lost", unreachable_since__isnull=False).exists())
    row.refresh_from_db()
    assert "No such file" in row.unreachable_reason
    until(lambda: Node.objects.filter(cluster=cluster).exists())

    path.write_text(Path(kubeconfig).read_text())  # it comes back, with no restart of ours
    until(lambda: Cluster.objects.filter(slug="lost", unreachable_since=None, unreachable_reason="").exists())
    until(lambda: Node.objects.filter(cluster=row).exists())


@pytest.mark.long
def test_a_cluster_that_hangs_is_unreachable(cluster: Cluster, kubeconfig: str, fleet: Fleet) -> None:
    kube = Kube(Path(kubeconfig))
    until(lambda: Node.objects.filter(cluster=cluster).exists())
    status, fault = kube.call("POST", "/_faults", {"hold": "before", "match": {"user_agent": "berth"}})
    if status >= 300:
        pytest.skip("a cluster without faults to switch on")
    try:
        until(lambda: Cluster.objects.filter(unreachable_since__isnull=False).exists())
    finally:
        kube.call("DELETE", f"/_faults/{fault['id']}")
    until(lambda: Cluster.objects.filter(unreachable_since=None, unreachable_reason="").exists())


@pytest.mark.slow
def test_a_cluster_that_is_removed_is_no_longer_watched(cluster: Cluster, fleet: Fleet) -> None:
    until(lambda: Node.objects.filter(cluster=cluster).exists())
    cluster.delete()
    until(lambda: not watching())
    assert not Node.objects.exists()


@pytest.mark.slow
def test_the_command_ends_when_asked_and_another_takes_over(cluster: Cluster) -> None:
    database = connections["default"].settings_dict
    url = f"postgres://{database['USER']}@/{database['NAME']}?host={database['HOST']}"
    environment = {**os.environ, "BERTH_ROLE": "watcher", "DATABASE_URL": url}
    command = [sys.executable, "manage.py", "watch"]
    processes = []
    try:
        processes.append(subprocess.Popen(command, env=environment))
        until(lambda: Watcher.objects.filter(kind="Node").exists())
        processes.append(subprocess.Popen(command, env=environment))
        time.sleep(2)
        Node.objects.all().delete()
        processes[0].kill()  # no time to clean up
        until(Node.objects.exists)
        processes[1].send_signal(signal.SIGTERM)
        assert processes[1].wait(60) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("namespace", "kind", "level", "expected"),
    [
        ("berth-demo", "Pod", "Normal", True),
        ("berth-demo", "ReplicaSet", "Normal", False),
        ("berth-demo", "ReplicaSet", "Warning", True),
        ("default", "Pod", "Warning", False),
        ("", "Node", "Warning", False),
    ],
)
def test_events_of_tenants_are_relevant(namespace: str, kind: str, level: str, expected: bool) -> None:
    about = {"namespace": namespace, "kind": kind}
    assert is_relevant_event({"type": level, "involvedObject": about}) is expected
