"""REST API of logs: pages of lines of jobs, and the search over a tenant."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Scope
from jobs.models import Job
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.job_rows import make_job
from tests.shared.log_rows import NOON_NS, make_stream, write
from tests.shared.workspace_rows import make_workspace
from workloads.logs.intake import SECOND
from workloads.logs.models import LogStream

pytestmark = pytest.mark.django_db


def log_of(job: Job, index: int = 0, attempt: int = 1) -> LogStream:
    return make_stream(job.tenant, job.pk, index=index, attempt=attempt)


def lines_of(reader: Any, path: str, most: int = 50) -> list[dict[str, Any]]:
    """Return all lines, over the addresses of `next`."""
    found: list[dict[str, Any]] = []
    for _ in range(most):
        answer = ask(reader, "GET", path)
        assert answer.status_code == 200, answer.content
        found += answer.json()["results"]
        if answer.json()["next"] is None:
            return found
        path = answer.json()["next"].partition("/api/v1/")[2]
    raise AssertionError("there is always a next page")


def test_lines_of_a_job_come_page_by_page(cast: Cast) -> None:
    job = make_job(cast, cast.bob)
    for index in range(3):
        write(log_of(job, index), [f"{index}: {n}" for n in range(10)])
    found = lines_of(script(cast.bob, Scope.READ), f"jobs/{job.pk}/logs/?limit=7")
    assert [line["text"] for line in found] == [f"{index}: {n}" for n in range(10) for index in range(3)]
    assert found[1] | {"run": "", "after": ""} == {
        "at": "2026-11-27T12:00:00Z", "index": 1, "attempt": 1, "text": "1: 0", "run": "", "after": "",
    }  # fmt: skip


def test_lines_can_be_chosen(cast: Cast) -> None:
    job = make_job(cast, cast.bob)
    for attempt in (1, 2):
        write(log_of(job, 4, attempt), ["loss=1", "Traceback", "loss=2"])
    bob = script(cast.bob)

    def texts(query: str) -> list[str]:
        return [f"{one['attempt']} {one['text']}" for one in lines_of(bob, f"jobs/{job.pk}/logs/?{query}")]

    assert texts("search=traceBACK") == ["1 Traceback", "2 Traceback"]
    assert texts("attempt=2&search=loss") == ["2 loss=1", "2 loss=2"]
    assert texts("index=3") == []
    assert texts("from=2026-11-27T12:00:02Z&attempt=1") == ["1 loss=2"]
    assert texts("to=2026-11-27T12:00:01Z&attempt=1") == ["1 loss=1"]


def test_polling_goes_on_after_the_last_line(cast: Cast) -> None:
    job = make_job(cast, cast.bob)
    stream = log_of(job)
    write(stream, ["one"])
    bob = script(cast.bob)
    [line] = lines_of(bob, f"jobs/{job.pk}/logs/")
    write(stream, ["two"], at_ns=NOON_NS + SECOND)
    assert [one["text"] for one in lines_of(bob, f"jobs/{job.pk}/logs/?after={line['after']}")] == ["two"]


@pytest.mark.parametrize(
    "query", ["after=1", "limit=0", "limit=501", "index=-1", "from=noon", "run=7", f"search={'x' * 201}"]
)
def test_a_wrong_query_is_told(cast: Cast, query: str) -> None:
    job = make_job(cast, cast.bob)
    answer = ask(script(cast.bob), "GET", f"jobs/{job.pk}/logs/?{query}")
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [query.partition("=")[0]])


@pytest.mark.django_db(transaction=True)
def test_a_log_is_downloaded_as_text(cast: Cast) -> None:
    job = make_job(cast, cast.bob)
    write(log_of(job, 2, 3), [f"line {n}" for n in range(1001)])
    answer: Any = ask(script(cast.bob), "GET", f"jobs/{job.pk}/logs/?download=true", Accept="text/plain")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert answer["Content-Disposition"].startswith("attachment")

    async def read() -> str:
        return b"".join([part async for part in answer.streaming_content]).decode()

    lines = async_to_sync(read)().splitlines()
    assert (lines[0], len(lines)) == ("2026-11-27T12:00:00Z 2/3 line 0", 1001)


def test_a_tenant_is_searched_by_its_owners_and_members_search_what_is_theirs(cast: Cast) -> None:
    write(log_of(make_job(cast, cast.bob)), ["out of memory: bob"])
    workspace = make_workspace(cast, cast.alice)
    write(make_stream(cast.demo, workspace.pk, "workspace"), ["Out of memory: alice"], at_ns=NOON_NS + SECOND)
    write(log_of(make_job(cast, cast.carol)), ["out of memory: carol"])

    def texts(actor: Any) -> list[str]:
        return [
            one["text"][15:] for one in lines_of(script(actor), "logs/?tenant=demo&search=of memory&limit=1")
        ]

    assert texts(cast.alice) == ["alice", "bob"]  # the newest first
    assert texts(cast.admin) == ["alice", "bob"]
    assert texts(cast.bob) == ["bob"]
    codes = {
        name: ask(script(getattr(cast, name)), "GET", "logs/?tenant=demo").status_code
        for name in ("victor", "carol")
    }
    assert codes == {"victor": 403, "carol": 404}
    [found, _] = lines_of(script(cast.alice), "logs/?tenant=demo&search=memory")
    assert (found["holder_kind"], found["holder_id"]) == ("workspace", str(workspace.pk))


def test_queries_do_not_grow_with_lines_and_logs(cast: Cast) -> None:
    job = make_job(cast, cast.bob)
    bob, counts = script(cast.bob), []
    ask(bob, "GET", f"jobs/{job.pk}/logs/")  # a token's first use is noted
    for parts in (1, 6):
        for index in range(parts):
            write(log_of(job, index, parts), ["x" * 1000] * 100)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            ask(bob, "GET", f"jobs/{job.pk}/logs/?limit=500")
        counts.append(len(captured))
    assert counts[0] == counts[1]
