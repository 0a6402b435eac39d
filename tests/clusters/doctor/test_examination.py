"""Tests of doctor's examination of a whole cluster: good and bad findings, and no change in the cluster."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from clusters.api import Api
from clusters.doctor import Check, Finding, Level, examine, isolation, metrics, version
from clusters.models import Cluster
from clusters.transport import Transport
from tests.clusters.doctor.told import Said, levels, said


def test_a_cluster_that_is_away_is_one_finding(tmp_path: Path) -> None:
    cluster = Cluster(
        slug="lab", connection=Cluster.Connection.KUBECONFIG, kubeconfig_path=str(tmp_path / "absent")
    )
    (finding,) = examine(cluster)
    assert (finding.level, bool(finding.hint)) == (Level.FAIL, True)


@pytest.mark.django_db
def test_a_real_cluster_has_nothing_missing(reached_cluster: Cluster) -> None:
    findings = examine(reached_cluster)
    assert [finding for finding in findings if finding.level == Level.FAIL] == []
    assert findings[0].message.startswith("Kubernetes v1.")


@pytest.mark.parametrize(
    ("told", "level"),
    [("v1.30.0", "ok"), ("v1.36.2+k3s1", "ok"), ("v1.29.9", "warn"), ("v1.37.0", "warn"), ("", "warn")],
)
def test_versions_that_were_tried_are_well(told: str, level: str) -> None:
    assert version.about_version(told).level.value == level


def test_a_cluster_without_a_metrics_api_is_a_warning() -> None:
    assert levels(said(metrics.metrics, Said())) == ["warn"]
    assert levels(said(metrics.metrics, Said(groups=("metrics.k8s.io",)))) == ["ok"]


class TestIsolation:
    CIDRS = ("pod_cidrs", "service_cidrs", "api_cidrs")

    @given(filled=st.sets(st.sampled_from(CIDRS)), without=st.booleans())
    def test_it_is_missing_while_any_network_is_unknown(self, filled: set[str], without: bool) -> None:
        cluster = Cluster(**{name: ["10.0.0.0/8"] for name in filled}, without_isolation=without)
        unknown = Level.WARN if without else Level.FAIL
        assert isolation.about(cluster).level == (Level.OK if filled == set(self.CIDRS) else unknown)


@pytest.mark.django_db
def test_the_examination_changes_nothing(api: Api, reached_cluster: Cluster) -> None:
    def everything() -> list[str]:
        kinds = ("Pod", "Service", "ConfigMap", "Namespace", "PersistentVolumeClaim")
        return sorted(body["metadata"]["uid"] for kind in kinds for body in api.list(kind))

    before = everything()
    examine(reached_cluster)
    assert everything() == before


@pytest.mark.django_db
def test_nodes_and_groups_are_requested_once(
    reached_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    request = Transport.request

    def counted(transport: Transport, method: str, path: str, **options: Any) -> dict[str, Any]:
        asked[path] += 1
        return request(transport, method, path, **options)

    monkeypatch.setattr(Transport, "request", counted)
    examine(reached_cluster)
    assert (asked["/apis"], asked["/api/v1/nodes"]) == (1, 1)


@pytest.mark.django_db
def test_a_node_with_another_driver_is_named_on_a_cluster(api: Api, reached_cluster: Cluster) -> None:
    label = "nvidia.com/cuda.driver-version.full"
    labels = {body["metadata"]["name"]: body["metadata"]["labels"] for body in api.list("Node")}
    name = next(name for name in sorted(labels) if label in labels[name])
    try:
        api.merge_patch("Node", None, name, {"metadata": {"labels": {label: "535.1"}}})
        told = [one.message for one in examine(reached_cluster) if one.check == Check.AGREEMENT]
    finally:
        api.merge_patch("Node", None, name, {"metadata": {"labels": {label: labels[name][label]}}})
    usual = labels[name][label]
    assert told == [f"NVIDIA drivers differ: most nodes have {usual}, but 535.1 on {name}."]


@pytest.mark.django_db
class TestCommand:
    def test_it_prints_lines_and_exits_with_1_when_something_is_missing(self) -> None:
        Cluster.objects.create(slug="lab", name="Lab", connection="kubeconfig", kubeconfig_path="/absent")
        out = io.StringIO()
        with pytest.raises(SystemExit) as ended:
            call_command("doctor", stdout=out)
        assert ended.value.code == 1
        head = "lab:\n  Connection and version\n    fail  The kubeconfig file /absent does not exist."
        assert out.getvalue().startswith(head)

    def test_warnings_alone_are_no_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Cluster.objects.create(slug="lab", name="Lab")
        warning = Finding(Level.WARN, "Hm.", "Look.", Check.STORAGE, "verbs: [get]")
        monkeypatch.setattr("clusters.doctor.keeping.examined", lambda cluster: [warning])
        out = io.StringIO()
        call_command("doctor", "--cluster", "lab", stdout=out)
        told = "lab:\n  Storage\n    warn  Hm.\n          Look.\n            verbs: [get]\n"
        assert out.getvalue() == told

    def test_a_cluster_that_is_not_there_is_told(self) -> None:
        with pytest.raises(CommandError, match="no such cluster"):
            call_command("doctor", "--cluster", "absent")
