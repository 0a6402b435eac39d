"""Measurements of metrics-server about pods of Berth become figures of their runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from clusters import signals
from clusters.models import Cluster, PodUsage
from clusters.nodes.pod_metrics import Measured
from monitoring.figures import series
from tests.cast import Cast, make_cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Cast:
    return make_cast()


@pytest.fixture
def workspace(cast: Cast) -> Workspace:
    return make_workspace(cast, cast.bob)


def runs_for(cast: Cast, run: UUID | None, name: str = "ws-0") -> None:
    PodUsage.objects.create(
        cluster=cast.cluster, uid=name, namespace="berth-demo", name=name, node="gpu-1", run=run
    )


def tell(cluster: Cluster, *pods: tuple[str, int, int], at: datetime | None = None) -> None:
    at = at or datetime.now(UTC) - timedelta(seconds=30)
    measured = [Measured("berth-demo", name, at, millicores, memory) for name, millicores, memory in pods]
    for _receiver, answer in signals.pods_measured.send_robust(Cluster, cluster=cluster, measured=measured):
        assert not isinstance(answer, Exception), answer


def told(workspace: Workspace) -> dict[str, list[float]]:
    lines = series.of_workspace(workspace).series
    return {line.name: [value for _at, value in line.points if value is not None] for line in lines}


def test_a_run_has_the_cores_and_the_memory_of_its_pod(cast: Cast, workspace: Workspace) -> None:
    runs_for(cast, workspace.run)
    tell(cast.cluster, ("ws-0", 1250, 3 * 2**30))
    assert told(workspace) == {"cpu": [1.25], "memory_used": [3072]}


def test_the_same_measurement_counts_once(cast: Cast, workspace: Workspace) -> None:
    runs_for(cast, workspace.run)
    at = datetime.now(UTC) - timedelta(seconds=30)
    for millicores in (500, 900):
        tell(cast.cluster, ("ws-0", millicores, 2**20), at=at)
    assert told(workspace)["cpu"] == [0.5]


def test_pods_without_a_run_or_a_row_leave_nothing(cast: Cast, workspace: Workspace) -> None:
    runs_for(cast, None, "tests-gpus")
    tell(cast.cluster, ("tests-gpus", 500, 2**20), ("gone-0", 500, 2**20))
    assert told(workspace) == {}


def test_a_pod_of_another_cluster_with_that_name_leaves_nothing(cast: Cast, workspace: Workspace) -> None:
    runs_for(cast, workspace.run)
    tell(Cluster.objects.create(slug="other", name="Other"), ("ws-0", 500, 2**20))
    assert told(workspace) == {}
