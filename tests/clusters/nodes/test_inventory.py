"""Tests of nodes and pods as rows: what counts, and that unchanged ones are not written."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from clusters.models import Cluster, Node, PodUsage
from clusters.nodes.inventory import NodeTable, UsageTable, node_values, pod_requests, usage_values
from tests.clusters.bodies import INSTALLATION, asks, node_body, pod_body

RUN = "5f6a1f3e-0000-4000-8000-000000000002"


class TestNode:
    def test_amounts_are_whole_numbers(self) -> None:
        values = node_values(node_body())
        assert values.allocatable == {"cpu": 63500, "memory": 512 * 2**30, "nvidia.com/gpu": 4, "pods": 110}

    def test_what_is_broken_is_capacity_and_not_allocatable(self) -> None:
        body = node_body()
        body["status"]["capacity"] = {"cpu": "64", "nvidia.com/gpu": "8"}
        values = node_values(body)
        assert (values.capacity, values.allocatable["nvidia.com/gpu"]) == ({"nvidia.com/gpu": 8}, 4)

    def test_conditions_are_kept_without_their_clocks_and_so_is_what_it_runs(self) -> None:
        body = node_body()
        pleg = "PLEG is not healthy: pleg was last seen active 3m2.5s ago; threshold is 3m0s"
        body["status"]["conditions"] = [
            {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": pleg,
             "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]  # fmt: skip
        body["status"]["nodeInfo"] = {"bootID": "b1", "kernelVersion": "6.1.0"}
        values = node_values(body)
        message = "PLEG is not healthy: pleg was last seen active … ago; threshold is …"
        ready = {"status": "False", "reason": "KubeletNotReady", "message": message}
        assert values.conditions == {"Ready": ready}
        assert values.system == {"bootID": "b1", "kernelVersion": "6.1.0"}

    def test_a_label_that_is_a_clock_is_left_out(self) -> None:
        assert node_values(node_body()).labels == {"nvidia.com/gpu.product": "T4"}

    @pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
    def test_only_true_is_ready(self, status: str, ready: bool) -> None:
        assert node_values(node_body(ready=status)).ready is ready

    def test_taints_are_compared_without_their_times_and_order(self) -> None:
        first = {"key": "a", "value": "", "effect": "NoSchedule"}
        second = {"key": "b", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
        values = node_values(node_body(taints=[second, first], unschedulable=True))
        assert values.taints == [first, {"key": "b", "value": "", "effect": "NoExecute"}]
        assert values.unschedulable

    def test_a_node_that_says_nothing_yet_has_nothing(self) -> None:
        values = node_values({"metadata": {"name": "new"}})
        assert (values.allocatable, values.ready, values.labels) == ({}, False, {})


class TestRequests:
    def test_containers_add_up(self) -> None:
        spec = {"containers": [asks(cpu="1"), asks(cpu="500m", memory="1Mi")]}
        assert pod_requests(spec) == {"cpu": 1500, "memory": 2**20, "pods": 1}

    def test_overhead_comes_on_top(self) -> None:
        assert pod_requests({"containers": [asks(cpu="1")], "overhead": {"cpu": "250m"}})["cpu"] == 1250

    def test_requests_of_the_whole_pod_take_the_place_of_its_containers(self) -> None:
        spec = {"containers": [asks(cpu="1", memory="1Mi")], "resources": {"requests": {"cpu": "4"}}}
        assert pod_requests(spec) == {"cpu": 4000, "memory": 2**20, "pods": 1}

    def test_a_pod_that_asks_for_nothing_is_still_a_pod(self) -> None:
        assert pod_requests({"containers": [{}]}) == {"pods": 1}

    @given(
        running=st.lists(st.integers(0, 99), max_size=4),
        starting=st.lists(st.tuples(st.booleans(), st.integers(0, 99)), max_size=4),
    )
    def test_requests_cover_every_moment_of_a_pod(
        self, running: list[int], starting: list[tuple[bool, int]]
    ) -> None:
        spec = {
            "containers": [asks(cpu=f"{cpu}m") for cpu in running],
            "initContainers": [asks("Always" if stays else None, cpu=f"{cpu}m") for stays, cpu in starting],
        }
        staying, moments = 0, []
        for stays, cpu in starting:
            moments.append(staying + cpu)
            staying += cpu if stays else 0
        assert pod_requests(spec).get("cpu", 0) == max([*moments, staying + sum(running)])


class TestUsage:
    @pytest.mark.parametrize(("node", "phase"), [(None, "Pending"), ("n1", "Succeeded"), ("n1", "Failed")])
    def test_a_pod_without_node_or_after_its_end_takes_nothing(self, node: str | None, phase: str) -> None:
        assert usage_values(pod_body(node=node, phase=phase), INSTALLATION) is None

    def test_the_run_is_known_for_our_pods_alone(self) -> None:
        ours = {"berth.dev/instance": INSTALLATION, "berth.dev/run": RUN}
        foreign, nonsense = ours | {"berth.dev/instance": "other"}, ours | {"berth.dev/run": "no uuid"}
        found = [usage_values(pod_body(**labels), INSTALLATION) for labels in (ours, foreign, nonsense, {})]
        assert [values.run for values in found if values] == [UUID(RUN), None, None, None]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(slug="lab", name="Lab")


@pytest.mark.django_db
class TestNodeTable:
    def test_a_list_makes_the_rows_what_was_listed(self, cluster: Cluster) -> None:
        Node.objects.create(cluster=cluster, name="gone")
        table = NodeTable(cluster)
        assert table.replace(map(node_values, [node_body("n1"), node_body("n2")])) == {"gone", "n1", "n2"}
        assert sorted(Node.objects.values_list("name", flat=True)) == ["n1", "n2"]
        assert not NodeTable(cluster).replace(map(node_values, [node_body("n1"), node_body("n2")]))

    def test_words_of_a_node_that_no_table_keeps_stop_nothing(self, cluster: Cluster) -> None:
        body = node_body()
        body["status"]["conditions"][0] |= {"message": "kernel: \0oops", "reason": "Odd\0"}
        body["status"]["nodeInfo"] = {"osImage": "Debian\0 12", "swap": {"capacity": 0}}
        NodeTable(cluster).put(body)
        row = Node.objects.get()
        told = {"status": "False", "reason": "Odd", "message": "kernel: oops"}
        assert (row.conditions["DiskPressure"], row.system) == (told, {"osImage": "Debian 12"})

    def test_what_did_not_change_costs_no_query(self, cluster: Cluster) -> None:
        table = NodeTable(cluster)
        table.replace([node_values(node_body())])
        later = node_body()
        later["metadata"]["labels"]["nvidia.com/gfd.timestamp"] = "1790000060"
        with CaptureQueriesContext(connection) as queries:
            assert not table.put(later)
        assert len(queries) == 0

    def test_a_change_is_written(self, cluster: Cluster) -> None:
        table = NodeTable(cluster)
        table.replace([node_values(node_body())])
        assert table.put(node_body(ready="Unknown")) == {"n1"}
        assert Node.objects.get().ready is False
        assert table.remove(node_body()) == {"n1"}
        assert not Node.objects.exists()

    def test_another_cluster_is_left_alone(self, cluster: Cluster) -> None:
        other = Cluster.objects.create(slug="other", name="Other")
        Node.objects.create(cluster=other, name="n1")
        NodeTable(cluster).replace([])
        assert Node.objects.get().cluster == other


@pytest.mark.django_db
class TestUsageTable:
    def test_a_list_makes_the_rows_what_was_listed(self, cluster: Cluster) -> None:
        PodUsage.objects.create(cluster=cluster, uid="gone", namespace="a", name="b", node="n1")
        table = UsageTable(cluster, INSTALLATION)
        assert table.replace(map(table.values, [pod_body("u1"), pod_body("u2", phase="Failed")])) is True
        row = PodUsage.objects.get()
        assert (row.uid, row.node, row.requests["nvidia.com/gpu"]) == ("u1", "n1", 1)

    def test_a_pod_gets_its_row_with_its_node_and_loses_it_at_its_end(self, cluster: Cluster) -> None:
        table = UsageTable(cluster, INSTALLATION)
        assert table.put(pod_body(node=None, phase="Pending")) is False
        assert table.put(pod_body(phase="Pending")) is True
        with CaptureQueriesContext(connection) as queries:
            assert table.put(pod_body(phase="Running")) is False
        assert len(queries) == 0
        assert table.put(pod_body(phase="Succeeded")) is True
        assert not PodUsage.objects.exists()
        assert table.remove(pod_body()) is False

    def test_hundreds_are_written_in_one_go(self, cluster: Cluster) -> None:
        table = UsageTable(cluster, INSTALLATION)
        with CaptureQueriesContext(connection) as queries:
            table.replace(table.values(pod_body(f"u{number}")) for number in range(300))
        assert PodUsage.objects.count() == 300
        assert len(queries) <= 5
