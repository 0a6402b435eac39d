"""Doctor's findings about a cluster's Prometheus."""

from __future__ import annotations

import time

import pytest

from clusters.doctor import Level
from clusters.models import PodUsage
from monitoring.dcgm import readings
from monitoring.dcgm.doctor import findings
from tests.cast import Cast, make_cast
from tests.monitoring.dcgm import exported
from tests.monitoring.dcgm.exported import SECOND, UTIL, labels, of, used_by
from tests.shared.servers.prometheus import Server, send

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(server: Server, monkeypatch: pytest.MonkeyPatch) -> Cast:
    monkeypatch.setattr(exported, "NOW", time.time())
    monkeypatch.setattr(readings, "METRICS", (UTIL,))
    cast = make_cast()
    cast.cluster.prometheus_url = server.url
    names = {"uid": "1", "namespace": "berth-demo", "name": "ws-0", "node": "gpu-1"}
    PodUsage.objects.create(cluster=cast.cluster, requests={"nvidia.com/gpu": 1}, **names)
    return cast


def said(cast: Cast) -> list[tuple[Level, str]]:
    return [(finding.level, finding.message) for finding in findings(cast.cluster)]


def test_a_cluster_without_prometheus_has_no_finding(cast: Cast) -> None:
    cast.cluster.prometheus_url = ""
    assert said(cast) == []


def test_the_number_of_gpus_is_shown(cast: Cast, server: Server) -> None:
    server.told[UTIL] = [of(labels(**used_by("ws-0")), 5), of(labels(SECOND), 0)]
    assert said(cast) == [(Level.OK, "Prometheus has data of 2 GPUs.")]


def test_nodes_without_pods_are_named(cast: Cast, server: Server) -> None:
    server.told[UTIL] = [of(labels(), 5)]
    assert said(cast)[1] == (Level.WARN, "Prometheus does not show which pods use the GPUs of gpu-1.")


def test_data_of_other_nodes_only_is_a_warning(cast: Cast, server: Server) -> None:
    server.told[UTIL] = [of(labels(node="elsewhere"), 5)]
    assert said(cast) == [(Level.WARN, "Prometheus has no GPU data of this cluster's nodes.")]


def test_no_answer_is_a_failure(cast: Cast, server: Server) -> None:
    server.fault = lambda request: send(request, 401, b"")
    assert said(cast) == [(Level.FAIL, "Prometheus does not accept Berth's token (401).")]
