"""A websocket whose peer stopped reading is ended when its pings stay unanswered, however much waits for it."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import aiohttp
import uvicorn

from portal.sockets import LARGEST_MESSAGE_BYTES, Sockets
from portal.up.plan import web_command

MUCH = "x" * 2**20
PING_SECONDS = 0.1


@asynccontextmanager
async def serving(application: Any) -> AsyncIterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application,
        ws=Sockets,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        log_level="warning",
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listening]))
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        await running


async def who_reads_nothing(port: int) -> socket.socket:
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(peer, ("127.0.0.1", port))
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (
        "GET / HTTP/1.1",
        "Host: x",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
    )
    await loop.sock_sendall(peer, "\r\n".join((*lines, "Sec-WebSocket-Version: 13", "", "")).encode())
    return peer


async def test_what_waits_for_a_peer_that_reads_nothing_keeps_it_no_longer() -> None:
    ended, sent = asyncio.Event(), []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        try:
            while True:
                await send({"type": "websocket.send", "text": MUCH})
                sent.append(MUCH)
        except OSError:
            ended.set()

    async with serving(application) as port:
        peer = await who_reads_nothing(port)
        await asyncio.wait_for(ended.wait(), 20)
        peer.close()
    assert sent  # much data was waiting


async def test_a_client_sends_little_to_berth_and_much_to_its_jupyter(settings: Any) -> None:
    settings.WORKSPACE_DOMAIN = "ws.example"

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        if (await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": "taken"})

    async def say(host: str, size: int) -> str | int:
        """Send a message of `size` bytes. Return the answer, or the code of the close."""
        address = f"http://127.0.0.1:{port}/"
        async with (
            aiohttp.ClientSession() as browser,
            browser.ws_connect(address, headers={"Host": host}) as wire,
        ):
            await wire.send_str("x" * size)
            answer = await wire.receive(20)
            return str(answer.data) if answer.type == aiohttp.WSMsgType.TEXT else int(wire.close_code or 0)

    async with serving(application) as port:
        assert await say("berth.example", 100) == "taken"
        assert await say("berth.example", LARGEST_MESSAGE_BYTES + 1) == 1009
        assert await say(f"{uuid4()}.ws.example", 2**20) == "taken"


def test_the_web_process_is_started_with_it() -> None:
    assert " ".join(web_command(8000)).count("--ws portal.sockets:Sockets") == 1
