"""Looks at parts and load: troubles open and end by themselves, from rows and from a Prometheus."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Cluster, Node, PartPod
from monitoring import enqueue
from monitoring.alerts import raising
from monitoring.dcgm.prometheus import Series
from monitoring.models import Alert, NodeLoad, Suspicion, Trouble
from monitoring.parts import load, looks
from tests.cast import Cast
from tests.monitoring.dcgm.conftest import server
from tests.shared.clients import browser
from tests.shared.servers.prometheus import Server

__all__ = ["server"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(enqueue, "tell_of_health", lambda *_: None)
    return cast.cluster


def part(cluster: Cluster, name: str, **values: object) -> PartPod:
    given = {"uid": name, "namespace": "kube-system", "name": name.lower(), "node": "gpu-1", "ready": True}
    return PartPod.objects.create(cluster=cluster, part=name, **given | values)


def open_troubles() -> list[tuple[str, str, str]]:
    return list(
        Trouble.objects.filter(ended_at=None).order_by("code").values_list("about", "code", "subject")
    )


def make_older(minutes: int) -> None:
    Suspicion.objects.update(since=timezone.now() - timedelta(minutes=minutes))


def test_a_crashing_part_is_a_trouble_until_it_is_well_again(cluster: Cluster) -> None:
    part(cluster, "CoreDNS", ready=False, detail="CrashLoopBackOff: back-off")
    looks.look(cluster.pk)
    looks.look(cluster.pk)
    assert open_troubles() == [("part", "part_crashing", "CoreDNS")]
    PartPod.objects.update(ready=True, detail="")
    looks.look(cluster.pk)
    assert open_troubles() == []
    assert Trouble.objects.count() == 1


def test_an_update_under_way_is_no_trouble_one_that_is_stuck_is(cluster: Cluster) -> None:
    part(cluster, "Calico", version="v3.28.0")
    part(cluster, "Calico", version="v3.29.1", uid="two", node="gpu-2")
    looks.look(cluster.pk)
    assert open_troubles() == []
    make_older(31)
    looks.look(cluster.pk)
    assert open_troubles() == [("versions", "part_versions_differ", "Calico")]
    PartPod.objects.update(version="v3.29.1")
    looks.look(cluster.pk)
    assert open_troubles() == []
    assert not Suspicion.objects.exists()


def test_a_cluster_that_is_away_is_not_judged(cluster: Cluster) -> None:
    part(cluster, "CoreDNS", ready=False, detail="CrashLoopBackOff")
    looks.look(cluster.pk)
    Cluster.objects.update(unreachable_since=timezone.now())
    PartPod.objects.all().delete()
    looks.look(cluster.pk)
    assert len(open_troubles()) == 1


def told(server: Server, name: str, *series: Series) -> None:
    figures = {figure.name: figure for figure in (*load.NODES, *load.STORAGE)}
    server.told[f"({figures[name].expression})"] = series


def one(value: float, **labels: str) -> Series:
    return Series(labels, [(1.0, value)])


def watch(cluster: Cluster, server: Server) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(prometheus_url=server.url)


def test_load_and_ceph_come_from_the_prometheus_and_go_when_it_is_no_longer_named(
    cluster: Cluster, server: Server
) -> None:
    watch(cluster, server)
    node = Node.objects.filter(cluster=cluster).order_by("name").first()
    assert node is not None
    told(server, "disk_percent", one(95.0, nodename=node.name), one(95.0, nodename="elsewhere"))
    told(server, "memory_percent", one(99.0, nodename=node.name))
    told(server, "status", one(2.0))
    told(server, "checks", one(1.0, name="OSD_DOWN"))
    looks.look_at_load(cluster.pk)
    # A full memory has to last.
    assert open_troubles() == [
        ("load", "ceph_unwell", "Ceph"),
        ("load", "node_overloaded", f"{node.name} disk"),
    ]
    make_older(6)
    looks.look_at_load(cluster.pk)
    assert len(open_troubles()) == 3
    assert set(Trouble.objects.filter(code="node_overloaded").values_list("node", flat=True)) == {node.name}
    assert NodeLoad.objects.get(node=node.name).figures == {"disk_percent": 95.0, "memory_percent": 99.0}
    Cluster.objects.update(prometheus_url="")
    looks.look_at_load(cluster.pk)
    assert open_troubles() == []
    assert not NodeLoad.objects.exists()


def test_a_prometheus_that_does_not_answer_ends_no_trouble(cluster: Cluster, server: Server) -> None:
    watch(cluster, server)
    told(server, "status", one(2.0))
    looks.look_at_load(cluster.pk)
    Cluster.objects.update(prometheus_url="http://127.0.0.1:9")
    looks.look_at_load(cluster.pk)
    assert open_troubles() == [("load", "ceph_unwell", "Ceph")]


def test_judging_the_node_leaves_these_troubles_alone(cluster: Cluster, server: Server) -> None:
    from monitoring.health import judging

    watch(cluster, server)
    told(server, "disk_percent", one(95.0, nodename="gpu-1"))
    looks.look_at_load(cluster.pk)
    judging.judge(cluster.pk, "gpu-1")
    assert [code for _, code, _ in open_troubles()] == ["node_overloaded"]


def test_the_nodes_page_shows_its_load_its_parts_and_what_to_type(
    cast: Cast, cluster: Cluster, server: Server
) -> None:
    watch(cluster, server)
    told(server, "cpu_percent", one(41.0, nodename="gpu-1"))
    told(server, "disk_read_bytes", one(3 * 1024**2, nodename="gpu-1"))
    told(server, "status", one(0.0))
    looks.look_at_load(cluster.pk)
    part(cluster, "Calico", ready=False, detail="CrashLoopBackOff")
    looks.look(cluster.pk)
    node = Node.objects.get(cluster=cluster, name="gpu-1")
    page = browser(cast.admin).get(f"/admin/clusters/node/{node.pk}/change/").content.decode()
    assert "<dt>CPU</dt><dd>41%</dd>" in page
    assert "3.0\xa0MB/s" in page
    assert "<dt>Ceph</dt><dd>well</dd>" in page
    assert "Calico crashes again and again (gpu-1)" in page
    assert "kubectl get pods -A -o wide | grep -i PART" in page


def test_a_trouble_of_a_part_becomes_an_alert_with_commands_for_admins(cast: Cast, cluster: Cluster) -> None:
    part(cluster, "CoreDNS", ready=False, detail="CrashLoopBackOff")
    looks.look(cluster.pk)
    raising.look()
    alert = Alert.objects.get(code="part_crashing")
    page = browser(cast.admin).get(f"/alerts/{alert.pk}/").content.decode()
    assert "CoreDNS crashes again and again (gpu-1)" in page
    assert "kubectl -n NAMESPACE logs POD --previous" in page
