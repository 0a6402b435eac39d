"""Figures of a workspace on its Metrics tab, in the API and on the first page, for people who may see it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from monitoring import sparks
from monitoring.figures.series import Series
from monitoring.models import AgentState
from monitoring.panels import Row, row_of, said
from monitoring.views import fitting
from tests.cast import Cast
from tests.monitoring.measured import measure
from tests.shared.clients import browser, script
from tests.shared.counted import queries
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db


def measured(workspace: Workspace) -> None:
    """Write figures: the GPU was 40 % busy a minute ago, and is 80 % busy now."""
    measure(workspace, minutes=1, every_seconds=60, use=lambda age, _gpu: 40 if age else 80)


def asked(cast: Cast, workspace: Workspace, query: str = "") -> Any:
    return script(cast.victor).get(f"/api/v1/workspaces/{workspace.pk}/metrics/{query}")


def test_the_api_returns_each_figure_with_its_unit(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    measured(workspace)
    told = asked(cast, workspace).json()
    assert (told["window"], told["step_seconds"]) == ("1h", 15)
    lines = {line["name"]: line for line in told["series"]}
    assert set(lines) == {
        "gpu_utilization",
        "gpu_memory_used",
        "gpu_power",
        "gpu_temperature",
        "cpu",
        "memory_used",
    }
    assert (lines["gpu_utilization"]["label"], lines["gpu_utilization"]["unit"]) == ("GPU 0", "%")
    figures = [value for _at, value in lines["gpu_utilization"]["points"] if value is not None]
    assert (figures[0], figures[-1]) == (40, 80)


def test_a_window_is_minutes_hours_days_or_the_run(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    for window in ("30m", "24h", "30d", "20d", "run"):
        assert asked(cast, workspace, f"?window={window}").json()["window"] == window


def test_any_other_window_is_refused(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    for window in ("0h", "31d", "-1h", "1y", "h", "1e9m", "٣h", ""):
        answer = asked(cast, workspace, f"?window={window}")
        assert answer.status_code == 400, window
        assert "up to 30 days" in answer.json()["error"]["fields"]["window"][0]


def test_the_page_shows_all_figures_without_scripts(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    measured(workspace)
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/metrics/?window=15m").content.decode()
    for words in (
        "GPU 0",
        ">80%<",
        "Limit: 80",
        "CPU cores",
        ">2.6<",
        "Limit: 4<",
        "4\xa0GiB",
        "260\xa0W",
    ):
        assert words in page, words


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.READY])
def test_the_page_says_why_there_are_no_figures(cast: Cast, phase: Phase) -> None:
    workspace = make_workspace(cast, cast.bob, phase)
    why = {Phase.WAITING: "It did not run in this period.", Phase.READY: "an admin can install Berth’s agent"}
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/metrics/").content.decode()
    assert why[phase].replace("’", "&#x27;") in page


def test_a_silent_agent_is_named_with_its_last_report(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    measured(workspace)
    then = timezone.now() - timedelta(minutes=9)
    AgentState.objects.create(cluster=cast.cluster, node="gpu-1", agent="a", taken_at=then, seen_at=then)
    assert "The agent of gpu-1 has not reported since" in asked(cast, workspace).json()["message"]


def test_a_workspace_without_gpus_has_no_gpu_charts(cast: Cast) -> None:
    cast.pool.resource_name = ""
    cast.pool.save()
    page = browser(cast.bob).get(f"/workspaces/{make_workspace(cast, cast.bob).pk}/metrics/").content.decode()
    assert 'data-panel="cpu"' in page
    assert 'data-panel="gpu_utilization"' not in page


def test_a_sparkline_has_a_text_and_only_for_people_who_may_see_the_workspace(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    measured(workspace)
    path = f"/workspaces/sparklines/?id={workspace.pk}&id=nonsense"
    seen = browser(cast.victor).get(path).content.decode()
    assert "GPU 80% busy, 60% over the last hour" in seen
    assert f'id="spark-{workspace.pk}"' in seen
    assert "busy" not in browser(cast.carol).get(path).content.decode()


def test_one_sparkline_takes_as_many_queries_as_many(cast: Cast) -> None:
    ids = []
    for number in range(4):
        workspace = make_workspace(cast, cast.bob, name=f"w{number}")
        measured(workspace)
        ids.append(str(workspace.pk))

    assert len(sparks.of(cast.bob, ids)) == len(ids)
    assert queries(lambda: sparks.of(cast.bob, ids)) == queries(lambda: sparks.of(cast.bob, ids[:1]))


def test_the_latest_mean_and_highest_value_of_a_line_ignore_gaps() -> None:
    line = Series("gpu_utilization", "%", "GPU 0", [(0, 10), (5, None), (10, 90), (15, 20), (20, None)])
    assert row_of(line) == Row("GPU 0", latest="20%", mean="40%", peak="90%")


def test_a_line_has_a_gap_where_nothing_was_reported() -> None:
    assert (
        sparks.path_of([(0, 0), (1, 100), (2, None), (3, 50), (4, None)])
        == "M0.0 19.0h0L24.0 1.0M72.0 10.0h0"
    )


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [(72.6, "%", "73%"), (512, "MiB", "512\xa0MiB"), (12_595, "MiB", "12.3\xa0GiB"), (1.5, "cores", "1.5"),
     (249.6, "W", "250\xa0W"), (None, "%", "–")],
)  # fmt: skip
def test_figures_are_written_with_their_units(value: float | None, unit: str, words: str) -> None:
    assert said(value, unit) == words


@pytest.mark.parametrize(
    ("age", "phase", "window"),
    [
        (timedelta(minutes=3), Phase.READY, "15m"),
        (timedelta(minutes=40), Phase.READY, "1h"),
        (timedelta(hours=20), Phase.STARTING, "24h"),
        (timedelta(days=3), Phase.READY, "run"),
        (timedelta(minutes=40), Phase.STOPPED, "run"),
        (None, Phase.WAITING, "1h"),
    ],
)
def test_the_first_window_shows_the_whole_run(age: timedelta | None, phase: Phase, window: str) -> None:
    now = timezone.now()
    assert fitting(Workspace(phase=phase, started_at=now - age if age else None), now) == window
