"""Hostile or silent Jupyters behind the portal; and browsers that leave or do not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType
from django.contrib.sessions.models import Session
from django.utils import timezone

from tests.cast import Cast
from tests.shared.sockets import in_thread, until_still
from tests.workspaces.ways_in.gateway_stage import MIB, Stage, jupyter_that, raw, staged, that_says
from workspaces.gateway import guests, sockets, upstream
from workspaces.gateway.door import Gateway

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


@pytest.fixture
async def stage(cast: Cast) -> AsyncIterator[Stage]:
    async with staged(cast) as stage:
        yield stage


# --- A hostile Jupyter

PLAIN = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"


async def test_what_proxies_and_browsers_would_obey_does_not_come_back(stage: Stage, settings: Any) -> None:
    async with stage.browser.get(stage.at("/api")) as answer:
        assert "Strict-Transport-Security" not in answer.headers  # a trial
    await stage.open()
    settings.SECURE_HSTS_SECONDS = 600
    hostile = {
        "X-Accel-Redirect": "/internal",
        "X-Accel-Buffering": "no",
        "X-Sendfile": "/etc/passwd",
        "Clear-Site-Data": '"cookies"',
        "Service-Worker-Allowed": "/",
        "Connection": "X-Mine",
        "X-Mine": "1",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in hostile.items())
    lines += "Strict-Transport-Security: max-age=0\r\n"
    set_to = ("berth_pass=x", "=berth_pass=x", "username-a=x", "_xsrf=x", "a=1; Domain =.localhost")
    cookies = "".join(f"Set-Cookie: {cookie}\r\n" for cookie in set_to)
    says = that_says(f"{PLAIN}{lines}{cookies}\r\nok")
    async with jupyter_that(stage, says), stage.browser.get(stage.at("/api")) as answer:
        assert not set(hostile) & set(answer.headers)
        assert answer.headers.getall("Set-Cookie") == ["a=1"]
        assert answer.headers.getall("Strict-Transport-Security") == ["max-age=600"]
        assert len(answer.headers.getall("Server", [])) == 1


async def test_a_jupyter_that_speaks_no_http_is_said_and_nothing_told(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.open()
    for said in (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nraw",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX: " + "y" * 20_000 + "\r\n\r\n",
        "HTTP/1.1 200 OK\r\n" + "X: y\r\n" * 1000 + "\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "",
    ):
        async with jupyter_that(stage, that_says(said)):
            status, told = await stage.get("/api")
        assert (status, "does not answer" in told) == (502, True), said
        assert "oken" not in caplog.text


async def test_no_header_hides_in_another(stage: Stage) -> None:
    await stage.open()
    for line in (
        "X: a\rSet-Cookie: evil=1",
        "X: a\nSet-Cookie: evil=1",
        "X: a\0b",
        "X: a\r\n Set-Cookie: evil=1",
    ):
        async with jupyter_that(stage, that_says(f"{PLAIN}{line}\r\n\r\nok")):
            answer = await raw(stage, "GET /api HTTP/1.1")
        for bad in ("\rSet", "\0", "\r\n Set"):
            assert bad not in answer.replace("\r\nSet-Cookie: evil=1", ""), line


async def test_no_answer_runs_over_its_end(stage: Stage) -> None:
    await stage.open()
    for said in (
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n"
        + "x" * 20
        + "\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    ):
        async with jupyter_that(stage, that_says(said)):
            answer = await raw(stage, "GET /api HTTP/1.1")
        head, _, body = answer.partition("\r\n\r\n")
        assert len(body) <= 2 or "transfer-encoding: chunked" in head.lower() or " 502 " in head, said


# --- Who goes away, and who is shown out


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_when_the_browser_leaves_a_silent_jupyter_is_left_too(stage: Stage, method: str) -> None:
    await stage.open()
    reached, left = asyncio.Event(), asyncio.Event()

    async def waits(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await reader.read()
        left.set()

    async def ask() -> None:
        await stage.browser.request(method, stage.at("/api"), data=b"x" * 9)

    async with jupyter_that(stage, waits):
        asking = asyncio.create_task(ask())
        await asyncio.wait_for(reached.wait(), 20)
        asking.cancel()
        await asyncio.wait_for(left.wait(), 20)


async def test_a_silent_jupyter_keeps_no_socket_waiting(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "HANDSHAKE_SECONDS", 0.1)
    await stage.open()
    async with jupyter_that(stage, silent):
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await stage.browser.ws_connect(stage.at("/socket"))


async def test_an_answer_that_lasts_ends_with_the_right_to_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guests, "STREAM_RECHECK_SECONDS", 0.1)
    monkeypatch.setattr(guests, "TRUSTED_SECONDS", 0)
    await stage.open()
    async with stage.browser.get(stage.at("/endless")) as answer:
        await answer.content.readexactly(65536)
        await in_thread(Session.objects.all().delete)()
        with pytest.raises(aiohttp.ClientPayloadError):
            while await answer.content.readany():
                pass
    await asyncio.wait_for(stage.jupyter.hung_up.wait(), 10)


async def test_a_socket_ends_with_a_session_that_ran_out_unheard(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guests, "SOCKET_RECHECK_SECONDS", 0.05)
    await stage.open()
    async with stage.browser.ws_connect(stage.at("/socket")) as open_socket:
        await open_socket.receive()
        await in_thread(Session.objects.update)(expire_date=timezone.now())
        assert (await open_socket.receive(10)).type == WSMsgType.CLOSE
        assert open_socket.close_code == 1008


async def test_a_socket_that_nobody_reads_stops_its_sender(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "CLOSE_SECONDS", 0.1)
    await stage.open()
    async with stage.browser.ws_connect(stage.at("/flood"), max_msg_size=0) as open_socket:
        await open_socket.receive()
        assert await until_still(lambda: stage.jupyter.served_bytes) < 64 * MIB
        assert open_socket._response.connection is not None
        assert open_socket._response.connection.transport is not None
        open_socket._response.connection.transport.abort()
    await asyncio.wait_for(stage.jupyter.hung_up.wait(), 10)


async def test_a_close_says_why(stage: Stage) -> None:
    await stage.open()
    for code in (1000, 3999, 1011, 1012):
        async with stage.browser.ws_connect(stage.at("/socket")) as open_socket:
            await open_socket.receive()
            await open_socket.send_str(f"bye {code}")
            assert (await open_socket.receive(10)).type == WSMsgType.CLOSE
            assert open_socket.close_code == code


async def test_when_the_server_ends_its_connections_end(stage: Stage) -> None:
    ours = upstream.client()
    asked = iter(["lifespan.startup", "lifespan.shutdown"])
    told: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": next(asked)}

    async def send(message: dict[str, str]) -> None:
        told.append(message["type"])

    await Gateway(None)({"type": "lifespan"}, receive, send)
    assert told == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert ours.closed
