"""Reports of agents, however many at once, do not delay people's pages; and no report is lost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.db import connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from monitoring.intake import tokens
from monitoring.models import AgentState
from portal import handler
from portal.handler import Agents, InOneTurn
from tests.cast import make_cast
from tests.shared.agent_reports import batch

SECONDS = 10.0
SAMPLES = f"{handler.AGENTS}samples/"


async def ask(
    where: Any, path: str, body: bytes = b"", secret: str = ""
) -> tuple[int, dict[bytes, bytes], bytes]:
    headers = [(b"host", b"testserver"), (b"content-length", str(len(body)).encode())]
    scope = {
        "type": "http",
        "method": "POST" if path == SAMPLES else "GET",
        "path": path,
        "query_string": b"",
        "headers": [*headers, (b"authorization", f"Bearer {secret}".encode())],
    }
    wire: Any = ApplicationCommunicator(where, scope)  # type: ignore[no-untyped-call]
    await wire.send_input({"type": "http.request", "body": body})
    start = await wire.receive_output(SECONDS)
    told = await wire.receive_output(SECONDS)
    return start["status"], dict(start["headers"]), told["body"]


class Slow(Agents):
    """Agents whose reports wait for the test."""

    goes_on = threading.Event()

    def _answer(self, scope: dict[str, Any], body: Any) -> HttpResponseBase:
        assert self.goes_on.wait(SECONDS)
        return HttpResponse(status=204)


@pytest.fixture
def slow() -> Iterator[Slow]:
    Slow.goes_on.clear()
    yield Slow(InOneTurn())
    Slow.goes_on.set()


@pytest.fixture
def agents(transactional_db: None) -> Iterator[Agents]:
    agents = Agents(InOneTurn())
    yield agents
    agents._threads.submit(
        connections.close_all
    ).result()  # in the one thread that handled the reports, one after another


async def test_a_page_is_answered_while_every_turn_of_agents_is_taken(slow: Slow) -> None:
    reports = [asyncio.create_task(ask(slow, SAMPLES)) for _ in range(5 * handler.AGENTS_AT_ONCE)]
    assert (await ask(slow, "/healthz"))[0] == 200
    assert not any(report.done() for report in reports)
    slow.goes_on.set()
    assert [status for status, _headers, _body in await asyncio.gather(*reports)] == [204] * len(reports)


async def test_an_agent_whose_turn_does_not_come_is_told_to_come_again(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "LONGEST_WAIT_SECONDS", 0)
    taken = [asyncio.create_task(ask(slow, SAMPLES)) for _ in range(handler.AGENTS_AT_ONCE)]
    await asyncio.sleep(0)
    status, headers, body = await ask(slow, SAMPLES)
    assert (status, headers[b"Retry-After"]) == (503, b"0")
    assert json.loads(body)["error"]["code"] == "busy"
    slow.goes_on.set()
    assert [status for status, _headers, _body in await asyncio.gather(*taken)] == [204] * len(taken)


def test_a_report_is_taken_and_who_has_no_token_refused_as_anywhere(agents: Agents) -> None:
    cast = make_cast()
    _token, secret = tokens.issue(cast.admin, cast.cluster, "nodes")
    report = json.dumps(batch()).encode()
    status, headers, body = asyncio.run(ask(agents, SAMPLES, report))
    assert (status, json.loads(body)["error"]["code"]) == (401, "token_refused")
    assert b"X-Request-ID" in headers
    assert AgentState.objects.count() == 0
    status, _headers, _body = asyncio.run(ask(agents, SAMPLES, report, secret))
    assert (status, AgentState.objects.get().node) == (204, "gpu-1")
