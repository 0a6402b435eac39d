"""The panel of a log on pages: what it shows without scripts, and where it links to."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import RequestFactory

from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.job_rows import make_job
from tests.shared.log_rows import make_stream, write
from tests.shared.workspace_rows import make_workspace
from workloads.logs.panel import Panel, readable

pytestmark = pytest.mark.django_db


def panel(holder: Any, **asked: str) -> Panel:
    return Panel(
        RequestFactory().get("/jobs/x/", asked), holder, socket="/ws/jobs/x/logs/", api="/api/v1/jobs/x/logs/"
    )


def test_the_last_lines_are_shown_and_the_older_ones_are_linked(cast: Cast) -> None:
    stream = make_stream(cast.demo)
    write(stream, [f"line {n}" for n in range(1200)])
    found = panel(stream.holder_id)
    assert found.text.split("\n") == [f"line {n}" for n in range(700, 1200)]
    assert (found.is_live, found.socket) == (True, "/ws/jobs/x/logs/")
    older = panel(stream.holder_id, before=found.older.partition("before=")[2])
    assert older.text.split("\n") == [f"line {n}" for n in range(200, 700)]
    assert (older.is_live, older.socket) == (False, "")
    oldest = panel(stream.holder_id, before=older.older.partition("before=")[2])
    assert (len(oldest.text.split("\n")), oldest.older) == (200, "")


def test_a_search_shows_matches_alone(cast: Cast) -> None:
    stream = make_stream(cast.demo)
    write(stream, ["fine", "Error: one", "fine", "error: two"])
    assert panel(stream.holder_id, search="ERROR").text == "Error: one\nerror: two"
    assert panel(stream.holder_id, search="nowhere\0").text == ""
    assert panel(stream.holder_id, within="hour").text == ""  # it was long ago


def test_a_part_can_be_chosen(cast: Cast) -> None:
    holder = uuid4()
    for index in (0, 1):
        write(make_stream(cast.demo, holder, index=index), [f"of {index}"])
    both = panel(holder)
    assert both.text == "0/1 │ of 0\n1/1 │ of 1"
    assert [one.value for one in both.parts] == ["1.1", "0.1"]
    one = panel(holder, part="1.1")
    assert (one.text, one.socket) == ("of 1", "/ws/jobs/x/logs/?index=1&attempt=1")
    assert "index=1&attempt=1" in one.download
    assert panel(holder, part="7.7").text == both.text


def test_runs_of_a_workspace_can_be_chosen(cast: Cast) -> None:
    holder, runs = uuid4(), [uuid4(), uuid4()]
    for run in runs:
        write(make_stream(cast.demo, holder, "workspace", run=run, attempt=0), [str(run)])
    assert {one.value for one in panel(holder).parts} == {str(run) for run in runs}
    assert panel(holder, part=str(runs[0])).text == str(runs[0])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        (" 10%\r 20%\r100%\r", "100%"),
        ("\x1b[1;31mError\x1b[0m: x\x1b[K", "Error: x"),
        ("", ""),
    ],
)
def test_lines_are_shown_as_a_terminal_leaves_them(text: str, shown: str) -> None:
    assert readable(text) == shown


def test_a_site_can_link_to_its_own_store(cast: Cast, settings: Any) -> None:
    stream = make_stream(cast.demo)
    assert panel(stream.holder_id).elsewhere == ""
    settings.LOGS_URL = (
        'https://loki.example/?q={{namespace="{namespace}"}}&pod={pod}&run={run}&a={from}&b={to_ms}'
    )
    address = panel(stream.holder_id).elsewhere
    assert f'namespace="{stream.namespace}"' in address
    assert f"pod={stream.pod}&run={stream.run}&a=20" in address
    assert "+" not in address
    assert panel(uuid4()).elsewhere == ""


def test_pages_show_logs_to_who_may_read_them(cast: Cast) -> None:
    job, workspace = make_job(cast, cast.bob), make_workspace(cast, cast.bob)
    write(make_stream(cast.demo, job.pk), ["<b>of the job</b>"])
    write(make_stream(cast.demo, workspace.pk, "workspace", attempt=0), ["says the workspace"])
    pages = {
        f"/jobs/{job.pk}/": "&lt;b&gt;of the job",
        f"/workspaces/{workspace.pk}/logs/": "says the workspace",
    }
    for path, text in pages.items():
        assert text in browser(cast.bob).get(path).content.decode()
        assert text in browser(cast.alice).get(path).content.decode()
        assert text not in browser(cast.victor).get(path).content.decode()
