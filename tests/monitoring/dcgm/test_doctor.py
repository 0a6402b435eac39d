"""Doctor's findings about a cluster's Prometheus."""

from __future__ import annotations

import time

import pytest

from clusters.doctor import Level
from clusters.models import PodUsage
from monitoring.dcgm import readings
from monitoring.dcgm.doctor import findings
from tests.cast import Cast, make_cast
from tests.monitoring.dcgm import told
from tests.monitoring.dcgm.conftest import Server, send
from tests.monitoring.dcgm.told import SECOND, UTIL, labels, of, used_by

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(server: Server, monkeypatch: pytest.MonkeyPatch) -> Cast:
    monkeypatch.setattr(told, "NOW", time.time())
    monkeypatch.setattr(readings, "METRICS", (UTIL,))
    cast = make_cast()
    cast.cluster.prometheus_url = server.url
    PodUsage.objects.create(
        cluster=cast.cluster,
        uid="1",
        namespace="berth-demo",
        name="ws-0",
        node="gpu-1",
        requests={"nvidia.com/gpu": 1},
    )
    return cast


def said(cast: Cast) -> list[tuple[Level, str]]:
    return [(finding.level, finding.message) for finding in findings(cast.cluster)]


def test_where_none_is_named_nothing_is_said(cast: Cast) -> None:
    cast.cluster.prometheus_url = ""
    assert said(cast) == []


def test_how_many_gpus_it_tells_of(cast: Cast, server: Server) -> None:
    server.told[UTIL] = [of(labels(**used_by("ws-0")), 5), of(labels(SECOND), 0)]
    assert said(cast) == [(Level.OK, "Prometheus has data of 2 GPUs.")]


def test_one_that_does_not_know_pods_is_named(cast: Cast, server: Server) -> None:
    server.told[UTIL] = [of(labels(), 5)]
    assert said(cast)[1] == (
        Level.WARN,
        "Prometheus does not show which pods use the GPUs of gpu-1.",
    )


def test_one_that_knows_none_of_this_clusters_nodes(cast: Cast, server: Server) -> None:
    server.told[UTIL] = [of(labels(node="elsewhere"), 5)]
    assert said(cast) == [(Level.WARN, "Prometheus has no GPU data of this cluster's nodes.")]


def test_one_that_does_not_answer(cast: Cast, server: Server) -> None:
    server.fault = lambda request: send(request, 401, b"")
    assert said(cast) == [(Level.FAIL, "Prometheus does not accept Berth's token (401).")]
