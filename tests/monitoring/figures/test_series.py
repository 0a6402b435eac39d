"""Lines over a window: their owners, gaps, and messages where there is nothing to show."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID, uuid4

import pytest

from accounts.errors import Refusal
from monitoring.figures import series
from monitoring.figures.series import Figures, Window, grid
from monitoring.figures.store import Sample, TrackIdentity, put
from monitoring.models import AgentState
from quotas.models import Pool
from tests.cast import Cast, make_cast
from tests.shared.workspace_rows import make_workspace
from workspaces import access
from workspaces.models import Workspace

UUID_0 = "GPU-00000000-0000-4000-8000-000000000000"
MIG_0 = "MIG-00000000-0000-4000-8000-000000000000"


def gpu_of(
    cast: Cast, *runs: UUID | None, device: str = UUID_0, label: str = "GPU 0", **more: Any
) -> TrackIdentity:
    held_by = frozenset(run for run in runs if run)
    return TrackIdentity(cast.cluster.pk, "gpu-1", device=device, label=label, runs=held_by, **more)


def values(figures: Figures, name: str, label: str | None = None) -> list[float]:
    (line,) = [line for line in figures.series if line.name == name and label in (None, line.label)]
    return [value for _at, value in line.points if value is not None]


def names(figures: Figures) -> list[str]:
    return [line.name for line in figures.series]


class TestAGrid:
    def test_has_a_point_for_each_step_and_bridges_a_short_gap(self) -> None:
        assert grid({1010: 5.0, 1040: 7.0}, Window(1000, 1060, 10)) == [
            (1000, None), (1010, 5.0), (1020, 5.0), (1030, 5.0), (1040, 7.0), (1050, None),
        ]  # fmt: skip

    def test_leaves_a_long_gap_open(self) -> None:
        told = grid({1000: 5.0, 1300: 7.0}, Window(1000, 1310, 10))
        assert [value for _at, value in told] == [5.0, *[None] * 29, 7.0]


@pytest.mark.django_db
class TestAWorkspace:
    @pytest.fixture
    def cast(self) -> Cast:
        return make_cast()

    @pytest.fixture
    def workspace(self, cast: Cast) -> Workspace:
        return make_workspace(cast, cast.bob)

    def test_shows_the_figures_of_its_gpu(self, cast: Cast, workspace: Workspace) -> None:
        of, now = gpu_of(cast, workspace.run), time.time()
        put([Sample(of, now - 60, 50, 1024, 300.4, 61), Sample(of, now - 30, 90.5, 2048, 310, 63)])
        figures = series.of_workspace(workspace)
        assert names(figures) == list(series.GPU_UNITS)
        assert values(figures, "gpu_utilization")[-1] == 90.5
        assert values(figures, "gpu_memory_used")[-1] == 2048
        assert values(figures, "gpu_power")[-1] == 310
        assert (figures.series[0].unit, figures.series[0].label) == ("%", "GPU 0")
        assert (figures.step_seconds, figures.message) == (15, "")

    def test_shows_no_figures_of_other_runs_of_the_gpu(self, cast: Cast, workspace: Workspace) -> None:
        now, own = time.time(), gpu_of(cast, workspace.run)
        put([Sample(gpu_of(cast, uuid4()), now - 300, 11), Sample(own, now - 200, 22)])
        put([Sample(gpu_of(cast, uuid4()), now - 100, 33), Sample(gpu_of(cast), now - 50, 0)])
        assert values(series.of_workspace(workspace), "gpu_utilization") == [22]

    def test_shows_its_own_part_of_a_shared_gpu_and_the_whole(self, cast: Cast, workspace: Workspace) -> None:
        now = time.time()
        put([Sample(gpu_of(cast, workspace.run, uuid4()), now - 30, 80, 9000)])
        put([Sample(gpu_of(cast, workspace.run, is_share=True), now - 30, None, 3000)])
        figures = series.of_workspace(workspace)
        assert values(figures, "gpu_memory_used", "GPU 0") == [9000]
        assert values(figures, "gpu_memory_used", "GPU 0, your part") == [3000]
        assert "shared" in figures.message

    def test_shows_cpu_and_memory_of_its_pod(self, cast: Cast, workspace: Workspace) -> None:
        assert workspace.run is not None
        pod = TrackIdentity(cast.cluster.pk, "gpu-1", runs=frozenset({workspace.run}))
        put([Sample(pod, time.time() - 20, 1.25, 4096)])
        figures = series.of_workspace(workspace)
        assert (values(figures, "cpu"), values(figures, "memory_used")) == ([1.25], [4096])
        assert "agent" in figures.message  # says that GPU figures need one

    def test_shows_memory_of_a_mig_device_and_why_no_use(self, cast: Cast, workspace: Workspace) -> None:
        put([Sample(gpu_of(cast, workspace.run, device=MIG_0), time.time() - 20, None, 512)])
        figures = series.of_workspace(workspace)
        assert names(figures) == ["gpu_memory_used"]
        assert "MIG" in figures.message

    def test_says_that_it_did_not_run(self, cast: Cast) -> None:
        waiting = make_workspace(cast, cast.bob, phase="waiting")  # type: ignore[arg-type]
        assert series.of_workspace(waiting).message == "It did not run in this period."

    def test_says_where_figures_will_come_from(self, cast: Cast, workspace: Workspace) -> None:
        assert "agent" in series.of_workspace(workspace).message
        cast.cluster.prometheus_url = "http://prometheus.monitoring:9090"
        cast.cluster.save()
        assert "within a minute" in series.of_workspace(workspace).message

    def test_its_pool_is_not_read_anew(
        self, cast: Cast, workspace: Workspace, django_assert_num_queries: Any
    ) -> None:
        put([Sample(gpu_of(cast, workspace.run), time.time() - 20, 10)])
        read = access.get(cast.bob, workspace.pk)
        with django_assert_num_queries(4):  # its runs, their tracks, the figures, the agent
            series.of_workspace(read)

    def test_explains_by_the_pool_of_its_run_not_its_next(self, cast: Cast, workspace: Workspace) -> None:
        workspace.pool = Pool.objects.create(cluster=cast.cluster, slug="cpu", name="CPU", resource_name="")
        workspace.save()
        assert "agent" in series.of_workspace(workspace).message

    def test_says_that_figures_are_simulated(self, cast: Cast, workspace: Workspace) -> None:
        put([Sample(gpu_of(cast, workspace.run), time.time() - 20, 10)])
        assert not series.of_workspace(workspace).is_simulated
        AgentState.objects.create(
            cluster=cast.cluster, node="gpu-1", agent="a", taken_at="2026-01-01T00:00Z",
            seen_at="2026-01-01T00:00Z", is_simulated=True,
        )  # fmt: skip
        assert series.of_workspace(workspace).is_simulated

    def test_a_gpu_of_a_node_shows_all_runs_in_one_line(self, cast: Cast, workspace: Workspace) -> None:
        now = time.time()
        put([Sample(gpu_of(cast, uuid4()), now - 100, 11), Sample(gpu_of(cast, workspace.run), now - 50, 22)])
        found = series.of_node(cast.cluster.pk, "gpu-1")
        assert {11, 22} <= set(values(found, "gpu_utilization"))

    def test_a_list_shows_the_mean_of_the_gpus_that_each_has(self, cast: Cast, workspace: Workspace) -> None:
        now = time.time()
        put([Sample(gpu_of(cast, workspace.run), now - 200, 20)])
        put([Sample(gpu_of(cast, workspace.run, device="GPU-1"), now - 200, 40)])
        other = make_workspace(cast, cast.bob, name="exp-2")
        lines = series.sparklines([workspace, other])
        assert [value for _at, value in lines[workspace.pk] if value is not None] == [30]
        assert other.pk not in lines

    def test_other_windows_are_refused(self, workspace: Workspace) -> None:
        with pytest.raises(Refusal) as refused:
            series.of_workspace(workspace, "1 year")
        assert "1h" in refused.value.fields["window"][0]
