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

from monitoring.intake import checks, tokens
from monitoring.models import AgentState
from portal.web import agents
from portal.web.agents import Agents
from portal.web.body_limit import AGENTS, LimitedBody
from portal.web.handler import InOneTurn
from tests.cast import make_cast
from tests.shared.agent_reports import batch

SECONDS = 10.0
SAMPLES = f"{AGENTS}samples/"


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

    async def _let_in(self, scope: dict[str, Any]) -> None:
        pass

    def _answer(self, scope: dict[str, Any], body: Any) -> HttpResponseBase:
        assert self.goes_on.wait(SECONDS)
        return HttpResponse(status=204)


@pytest.fixture
def slow() -> Iterator[Slow]:
    Slow.goes_on.clear()
    yield Slow(InOneTurn())
    Slow.goes_on.set()


@pytest.fixture
def intake(transactional_db: None) -> Iterator[Agents]:
    intake = Agents(InOneTurn())
    yield intake
    for threads in (intake._threads, intake._guard):
        threads.submit(
            connections.close_all
        ).result()  # each handled what came in one thread, one after another


async def test_a_page_is_answered_while_every_turn_of_agents_is_taken(slow: Slow) -> None:
    reports = [asyncio.create_task(ask(slow, SAMPLES)) for _ in range(5 * agents.AGENTS_AT_ONCE)]
    assert (await ask(slow, "/healthz"))[0] == 200
    assert not any(report.done() for report in reports)
    slow.goes_on.set()
    assert [status for status, _headers, _body in await asyncio.gather(*reports)] == [204] * len(reports)


async def test_an_agent_whose_turn_does_not_come_is_told_to_come_again(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "LONGEST_WAIT_SECONDS", 0)
    taken = [asyncio.create_task(ask(slow, SAMPLES)) for _ in range(agents.AGENTS_AT_ONCE)]
    await asyncio.sleep(0)
    status, headers, body = await ask(slow, SAMPLES)
    assert (status, headers[b"retry-after"]) == (503, b"0")
    assert json.loads(body)["error"]["code"] == "busy"
    slow.goes_on.set()
    assert [status for status, _headers, _body in await asyncio.gather(*taken)] == [204] * len(taken)


class Wire:
    """A request whose body has not come."""

    def __init__(
        self, where: Any, secret: str = "", *, client: str = "10.0.0.1", length: int = 2**20
    ) -> None:
        headers = [(b"host", b"testserver"), (b"content-length", str(length).encode())]
        if secret:
            headers.append((b"authorization", f"Bearer {secret}".encode()))
        scope = {
            "type": "http",
            "method": "POST",
            "path": SAMPLES,
            "query_string": b"",
            "headers": headers,
            "client": (client, 1234),
        }
        self.wire: Any = ApplicationCommunicator(where, scope)  # type: ignore[no-untyped-call]

    async def answer(self) -> tuple[int, str]:
        start = await self.wire.receive_output(SECONDS)
        assert dict(start["headers"])[b"connection"] == b"close"
        told = await self.wire.receive_output(SECONDS)
        return start["status"], json.loads(told["body"])["error"]["code"]


STRANGERS = ("", "nonsense", "brt_abcdefghijkl_secret", "bra_abcdefghijkl_" + "x" * 40)


@pytest.mark.parametrize("secret", STRANGERS)
def test_a_stranger_is_refused_before_the_body_comes(intake: Agents, secret: str) -> None:
    assert asyncio.run(Wire(intake, secret).answer()) == (401, "token_refused")


def test_a_report_is_taken_and_who_has_no_token_refused(intake: Agents) -> None:
    cast = make_cast()
    _token, secret = tokens.issue(cast.admin, cast.cluster, "nodes")
    report = json.dumps(batch()).encode()
    status, headers, body = asyncio.run(ask(intake, SAMPLES, report))
    assert (status, json.loads(body)["error"]["code"]) == (401, "token_refused")
    assert headers[b"www-authenticate"] == b"Bearer"
    assert AgentState.objects.count() == 0
    status, _headers, _body = asyncio.run(ask(intake, SAMPLES, report, secret))
    assert (status, AgentState.objects.get().node) == (204, "gpu-1")


def test_a_revoked_token_ends_at_once_though_it_was_proven_a_moment_ago(intake: Agents) -> None:
    cast = make_cast()
    token, secret = tokens.issue(cast.admin, cast.cluster, "nodes")
    report = json.dumps(batch()).encode()
    assert asyncio.run(ask(intake, SAMPLES, report, secret))[0] == 204
    tokens.revoke(cast.admin, token)
    assert asyncio.run(ask(intake, SAMPLES, report, secret))[0] == 401


def test_a_body_that_says_it_is_too_large_is_not_read(intake: Agents) -> None:
    cast = make_cast()
    _token, secret = tokens.issue(cast.admin, cast.cluster, "nodes")
    wire = Wire(intake, secret, length=checks.MOST_BYTES + 1)
    assert asyncio.run(wire.answer()) == (413, "too_large")


def test_an_endless_body_of_an_agent_is_cut_off(intake: Agents) -> None:
    cast = make_cast()
    _token, secret = tokens.issue(cast.admin, cast.cluster, "nodes")

    async def send() -> tuple[int, str]:
        wire = Wire(LimitedBody(intake), secret, length=0)
        for _ in range(checks.MOST_BYTES // 2**20 + 1):
            await wire.wire.send_input({"type": "http.request", "body": b"x" * 2**20, "more_body": True})
        return await wire.answer()

    assert asyncio.run(send()) == (413, "body_too_large")


def test_a_body_that_does_not_come_keeps_no_place(intake: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    cast = make_cast()
    _token, secret = tokens.issue(cast.admin, cast.cluster, "nodes")
    assert asyncio.run(ask(intake, SAMPLES, json.dumps(batch()).encode(), secret))[0] == 204
    monkeypatch.setattr(agents, "LONGEST_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(intake, "_bodies", asyncio.Semaphore(1))
    assert asyncio.run(Wire(intake, secret).answer()) == (503, "busy")
    assert not intake._bodies.locked()


def test_a_flood_of_strangers_lets_an_agent_from_elsewhere_in(intake: Agents) -> None:
    cast = make_cast()
    _token, secret = tokens.issue(cast.admin, cast.cluster, "nodes")

    async def flood() -> tuple[int, int]:
        guesses = [f"bra_{number:012}_{'x' * 40}" for number in range(40)]
        strangers = [asyncio.create_task(Wire(intake, guess).answer()) for guess in guesses]
        await asyncio.sleep(0)
        headers = [(b"host", b"testserver"), (b"authorization", f"Bearer {secret}".encode())]
        await intake._let_in({"headers": headers, "client": ("10.0.0.2", 1)})
        waiting = sum(not stranger.done() for stranger in strangers)
        answers = await asyncio.gather(*strangers)
        return waiting, sum(status == 401 for status, _code in answers)

    waiting, refused = asyncio.run(flood())
    assert (waiting > 30, refused) == (True, 40)
