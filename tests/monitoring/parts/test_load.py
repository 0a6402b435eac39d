"""Load of nodes and health of Ceph: which series is of which node, and what is a problem."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.explain import sentence
from monitoring.dcgm.prometheus import Series
from monitoring.parts.load import node_of, of_ceph, of_nodes, verdicts_of_ceph, verdicts_of_node

KNOWN = frozenset({"gpu-1", "gpu-2"})


def series(value: float, **labels: str) -> Series:
    return Series(labels, [(1.0, 0.0), (2.0, value)])


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"nodename": "gpu-1", "instance": "10.0.0.1:9100"}, "gpu-1"),
        ({"instance": "gpu-2:9100"}, "gpu-2"),
        ({"instance": "gpu-2"}, "gpu-2"),
        ({"kubernetes_node": "gpu-1", "instance": "10.0.0.1:9100"}, "gpu-1"),
        ({"nodename": "backup-server", "instance": "10.0.0.9:9100"}, ""),
        ({}, ""),
    ],
)
def test_a_series_belongs_to_the_node_that_its_labels_name(labels: dict[str, str], node: str) -> None:
    assert node_of(labels, KNOWN) == node


def test_the_newest_figure_counts_and_hosts_outside_the_cluster_do_not() -> None:
    told = {"cpu_percent": [series(12.34, nodename="gpu-1"), series(99.0, nodename="elsewhere")]}
    assert of_nodes(told, KNOWN) == {"gpu-1": {"cpu_percent": 12.3}}


@pytest.mark.parametrize(
    ("figures", "codes"),
    [
        ({"cpu_percent": 96.9, "memory_percent": 92.9, "disk_percent": 87.9, "disk_time_percent": 96.0}, []),
        ({"cpu_percent": 97.0}, [("node_overloaded", "cpu")]),
        (
            {"memory_percent": 95.0, "disk_percent": 90.0},
            [("node_overloaded", "memory"), ("node_overloaded", "disk")],
        ),
        ({"disk_time_percent": 100.0}, [("node_overloaded", "disk time")]),
        ({"network_in_errors": 0.4, "network_out_errors": 0.7}, [("node_network_faulty", None)]),
        ({}, []),
    ],
)
def test_a_node_is_overloaded_above_the_limits(figures: dict[str, float], codes: list[Any]) -> None:
    found = list(verdicts_of_node("gpu-1", figures))
    assert [(one.code, one.data.get("what")) for one in found] == codes
    assert all(
        "?" not in sentence(one.code, one.data) and "%(" not in sentence(one.code, one.data) for one in found
    )


def test_figures_that_move_a_little_leave_the_trouble_as_it_is() -> None:
    def data(errors: float, percent: float) -> list[Any]:
        figures = {"network_in_errors": errors, "memory_percent": percent}
        return [dict(one.data) for one in verdicts_of_node("gpu-1", figures)]

    assert data(12.0, 93.1) == data(97.5, 99.9)


def test_ceph_is_told_by_its_own_checks_and_versions() -> None:
    told = of_ceph(
        {
            "status": [series(1.0)],
            "checks": [
                series(1.0, name="OSD_DOWN", severity="HEALTH_WARN"),
                series(1.0, name="MDS_SLOW_REQUEST"),
            ],
            "versions": [series(3.0, ceph_version="ceph version 18.2.4 (e7ad5345) reef (stable)")],
            "write_bytes": [series(1024.0)],
        }
    )
    assert told["checks"] == ["MDS_SLOW_REQUEST", "OSD_DOWN"]
    assert told["versions"] == ["18.2.4"]
    [verdict] = verdicts_of_ceph(told)
    assert (verdict.code, verdict.data["status"]) == ("ceph_unwell", "warning")
    assert sentence(verdict.code, verdict.data) == "Ceph reports: MDS_SLOW_REQUEST, OSD_DOWN."


def test_without_cephs_exporter_nothing_is_said_of_ceph() -> None:
    assert of_ceph({"checks": [series(1.0, name="OSD_DOWN")]}) == {}
    assert list(verdicts_of_ceph({})) == []
    assert list(verdicts_of_ceph({"status": 0.0, "checks": []})) == []
