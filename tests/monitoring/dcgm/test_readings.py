"""Data of a cluster's Prometheus on pages; an agent's data goes before it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler

import pytest

from clusters.models import Gpu, PodUsage
from monitoring.dcgm import readings
from monitoring.dcgm.prometheus import NoAnswer
from monitoring.dcgm.readings import Readings, take
from monitoring.figures import series
from monitoring.intake import ecc
from monitoring.models import AgentState, XidEvent
from tests.cast import Cast, make_cast
from tests.monitoring.dcgm import exported
from tests.monitoring.dcgm.exported import (
    ACTIVE,
    ECC,
    FIRST,
    FREE,
    SECOND,
    UNCORRECTED,
    USED,
    UTIL,
    XID_COUNT,
    XIDS,
    counted,
    labels,
    of,
    used_by,
)
from tests.shared.servers.prometheus import Server, send
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Return the time that the series use too, and limit the metrics to a few."""
    now = datetime.now(UTC).replace(microsecond=0)
    monkeypatch.setattr(exported, "NOW", now.timestamp())
    monkeypatch.setattr(readings, "METRICS", (UTIL, USED, FREE, ACTIVE, XIDS, XID_COUNT, ECC, UNCORRECTED))
    return now


@pytest.fixture
def cast(server: Server) -> Cast:
    cast = make_cast()
    cast.cluster.prometheus_url = server.url
    cast.cluster.save()
    return cast


@pytest.fixture
def workspace(cast: Cast) -> Workspace:
    """Return bob's workspace, whose pod ws-0 runs on gpu-1."""
    workspace = make_workspace(cast, cast.bob)
    requests = {"cpu": 4000, "nvidia.com/gpu": 1}
    names = {"uid": "ws-0", "namespace": "berth-demo", "name": "ws-0", "node": "gpu-1"}
    PodUsage.objects.create(cluster=cast.cluster, run=workspace.run, requests=requests, **names)
    return workspace


def values(workspace: Workspace) -> dict[str, list[float]]:
    lines = series.of_workspace(workspace).series
    return {line.name: [value for _at, value in line.points if value is not None] for line in lines}


def test_a_workspace_has_the_figures_of_its_gpu(
    cast: Cast, workspace: Workspace, server: Server, now: datetime
) -> None:
    who = labels(**used_by("ws-0"))
    server.told = {UTIL: [of(who, 97)], USED: [of(who, 40000)], FREE: [of(who, 41000)]}
    assert take(cast.cluster, now) == 1
    gpu = Gpu.objects.get()
    assert (gpu.node, gpu.uuid, gpu.name, gpu.memory_mib) == ("gpu-1", FIRST, "NVIDIA A100-SXM4-80GB", 81000)
    assert (gpu.utilization_percent, gpu.memory_used_mib) == (97, 40000)
    assert [entry["pod"] for entry in gpu.held_by] == ["ws-0"]
    assert AgentState.objects.get().driver_version == "550.144.03"
    assert values(workspace) == {"gpu_utilization": [97], "gpu_memory_used": [40000]}


def test_a_mig_instance_has_its_use(cast: Cast, workspace: Workspace, server: Server, now: datetime) -> None:
    server.told = {ACTIVE: [of(labels(GPU_I_ID="7", GPU_I_PROFILE="1g.10gb", **used_by("ws-0")), 0.5)]}
    take(cast.cluster, now)
    assert values(workspace) == {"gpu_utilization": [50]}
    assert "no utilization" not in series.of_workspace(workspace).message


def test_hami_names_the_gpu_of_its_pod(
    cast: Cast, workspace: Workspace, server: Server, now: datetime
) -> None:
    PodUsage.objects.update(devices=[{"id": SECOND, "memory_mib": 4096, "cores": 25}])
    server.told = {UTIL: [of(labels(**used_by("ws-0")), 1), of(labels(SECOND), 97)]}
    take(cast.cluster, now)
    assert {gpu.uuid: len(gpu.held_by) for gpu in Gpu.objects.all()} == {FIRST: 0, SECOND: 1}
    assert values(workspace) == {"gpu_utilization": [97]}


def test_a_scrape_counts_once(cast: Cast, server: Server, now: datetime) -> None:
    server.told = {UTIL: [of(labels(), 97)]}
    assert [take(cast.cluster, now), take(cast.cluster, now + timedelta(seconds=5))] == [1, 0]
    server.told = {UTIL: [of(labels(), 98, ago=-10)]}
    assert take(cast.cluster, now + timedelta(seconds=15)) == 1


def test_an_xid_is_stored_once(cast: Cast, server: Server, now: datetime) -> None:
    server.told = {XIDS: [of(labels(), 0)]}
    take(cast.cluster, now)
    later = now + timedelta(seconds=60)
    server.told = {XIDS: [of(labels(), 0, 79, 79, 79, ago=-60)]}
    for seconds in (0, 1, 2):
        take(cast.cluster, later + timedelta(seconds=seconds))
    assert [(event.xid, event.gpu, event.at) for event in XidEvent.objects.all()] == [
        (79, FIRST, now + timedelta(seconds=30))
    ]


def test_the_same_xid_again_is_stored_again(cast: Cast, server: Server, now: datetime) -> None:
    for seconds, values in ((0, (0, 1)), (30, (1, 1, 2)), (45, (1, 1, 2, 2))):
        server.told = {
            XID_COUNT: [of(counted(31), *values, ago=-seconds)],
            UTIL: [of(labels(), 5, ago=-seconds)],
        }
        take(cast.cluster, now + timedelta(seconds=seconds))
    times = [event.at - now for event in XidEvent.objects.filter(xid=31)]
    assert times == [timedelta(seconds=30), timedelta(0)]


def test_ecc_is_known_and_its_errors_take_the_gpu_out_without_an_agent(
    cast: Cast, server: Server, now: datetime
) -> None:
    server.told = {ECC: [of(labels(), 1), of(labels(SECOND), 1)], UNCORRECTED: [of(labels(), 2)]}
    take(cast.cluster, now)
    assert {gpu.uuid: (gpu.ecc, gpu.out_code) for gpu in Gpu.objects.all()} == {
        FIRST: (True, "gpu_memory_damaged"),
        SECOND: (True, ""),
    }
    assert list(ecc.wrong(cast.cluster.pk).values()) == [{"gpu-1": "true"}]


@pytest.mark.parametrize(("silent_seconds", "taken"), [(10, 0), (90, 1)])
def test_a_nodes_own_agent_goes_first_unless_silent(
    cast: Cast, server: Server, silent_seconds: int, taken: int, now: datetime
) -> None:
    seen = now - timedelta(seconds=silent_seconds)
    agent = {"node": "gpu-1", "agent": "0123456789abcdef", "sequence": 10**15}
    AgentState.objects.create(cluster=cast.cluster, taken_at=seen, seen_at=seen, **agent)
    server.told = {UTIL: [of(labels(), 97)]}
    assert take(cast.cluster, now) == taken


def test_no_answer_is_an_error_with_its_reason(cast: Cast, server: Server, now: datetime) -> None:
    server.fault = lambda request: send(request, 503, b"")
    with pytest.raises(NoAnswer, match="answered 503"):
        take(cast.cluster, now)


@pytest.mark.django_db(transaction=True)
class TestTheClock:
    @pytest.fixture
    def of_cluster(self, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Readings:
        monkeypatch.setattr(readings, "EVERY_SECONDS", 0)
        return Readings(cast.cluster.pk)

    def test_one_reading_at_a_time(self, of_cluster: Readings, server: Server) -> None:
        def waits(request: BaseHTTPRequestHandler) -> None:
            request.close_connection = True
            server.ended.wait(20)

        server.fault = waits
        assert [of_cluster.begin(), of_cluster.begin()] == [True, False]
        server.ended.set()
        ended(of_cluster)
        assert of_cluster.begin()
        ended(of_cluster)

    def test_a_fault_does_not_end_the_reading(
        self, of_cluster: Readings, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(readings, "known_of", lambda cluster: 1 / 0)
            of_cluster.begin()
            ended(of_cluster)
        server.told = {UTIL: [of(labels(), 97)]}
        of_cluster.begin()
        ended(of_cluster)
        assert Gpu.objects.get().utilization_percent == 97


def ended(of_cluster: Readings) -> None:
    assert of_cluster._thread
    of_cluster._thread.join(20)
    assert not of_cluster._thread.is_alive()
