"""Stage for Jupyter through the portal: a Jupyter that reports its requests, Berth before it, and a browser."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import aiohttp
from aiohttp import WSMsgType, web
from aiohttp.abc import AbstractResolver, ResolveResult
from django.db import connections
from django.test import Client

from accounts.access import Actor
from tests.cast import Cast
from tests.shared.sockets import in_thread
from tests.shared.web import berth
from tests.shared.workspace_rows import make_workspace
from workspaces.gateway import guests
from workspaces.gateway.hosts import Site
from workspaces.models import Workspace

MIB = 2**20


@dataclass
class Upstream:
    """An HTTP server that reports what it got."""

    port: int = 0
    served_bytes: int = 0
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1024 * MIB)
        app.router.add_get("/socket", self.socket)
        app.router.add_get("/endless", self.endless)
        app.router.add_get("/flood", self.flood)
        app.router.add_get("/large", self.large)
        app.router.add_get("/breaks", self.breaks)
        app.router.add_route("*", "/{path:.*}", self.echo)
        return app

    async def echo(self, request: web.Request) -> web.Response:
        digest = hashlib.sha256()
        size = 0
        async for piece in request.content.iter_any():
            digest.update(piece)
            size += len(piece)
        told = {"method": request.method, "path": request.raw_path, "headers": dict(request.headers)}
        answer = web.json_response(told | {"size": size, "digest": digest.hexdigest()})
        answer.headers["Set-Cookie"] = "theme=1; Domain=.localhost; Path=/"
        return answer

    async def large(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": str(64 * MIB)})
        await answer.prepare(request)
        for _ in range(64):
            await answer.write(b"x" * MIB)
        return answer

    async def endless(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while not self.hung_up.is_set():
                await answer.write(b"x" * 65536)
                self.served_bytes += 65536
        except ConnectionError:
            self.hung_up.set()
            raise
        return answer

    async def flood(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        try:
            while True:
                await socket.send_bytes(b"x" * MIB)
                self.served_bytes += MIB
        except ConnectionError:
            self.hung_up.set()
        return socket

    async def breaks(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "100"})
        await answer.prepare(request)
        await answer.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return answer

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("v1.kernel.websocket.jupyter.org",), max_msg_size=0)
        await socket.prepare(request)
        await socket.send_json({"headers": dict(request.headers)})
        async for message in socket:
            if message.type == WSMsgType.BINARY:
                await socket.send_bytes(message.data[::-1])
            elif message.data.startswith("bye "):
                await socket.close(code=int(message.data.removeprefix("bye ")))
            else:
                await socket.send_str(message.data)
        return socket


class Everywhere(AbstractResolver):
    """Resolver of all names to this machine, as browsers resolve `*.localhost`."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)
        ]

    async def close(self) -> None:
        pass


@dataclass
class Stage:
    """Berth's web process, a Jupyter behind it, a workspace of bob's that leads there, and a browser."""

    cast: Cast
    jupyter: Upstream
    workspace: Workspace
    port: int
    browser: aiohttp.ClientSession

    def at(self, path: str, workspace_id: UUID | None = None, app: int | None = None) -> str:
        site = Site(workspace_id or self.workspace.pk, app)
        return f"http://{site.label}.localhost:{self.port}{path}"

    async def link(
        self, actor: Actor, workspace: Workspace | None = None, app: int | None = None, then: str = "/lab"
    ) -> str:
        """Address to which the portal's page sends this person; empty if it does not let them in."""
        site = Site((workspace or self.workspace).pk, app)

        def ask() -> str:
            client = Client(headers={"Host": f"localhost:{self.port}"})
            client.force_login(actor.user)
            answer = client.get(f"{site.page}?next={then}")
            return answer["Location"] if answer.status_code == 302 else ""

        return str(await in_thread(ask)())

    async def open(self, actor: Actor | None = None) -> None:
        """Enter as a browser does; the pass is then in its cookie jar."""
        link = await self.link(actor or self.cast.bob, then="/lab/tree/a.ipynb")
        async with self.browser.get(link, allow_redirects=False) as answer:
            assert answer.status == 303
            assert answer.headers["Location"] == "/lab/tree/a.ipynb"

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        async with self.browser.get(self.at(path), allow_redirects=False, **options) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await answer.json() if is_json else await answer.text()


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[int]:
    runner = web.AppRunner(app, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


@asynccontextmanager
async def staged(cast: Cast) -> AsyncIterator[Stage]:
    jupyter = Upstream()
    jar = aiohttp.CookieJar(unsafe=True)
    async with serving(jupyter.app()) as upstream_port, berth() as port:
        workspace = await in_thread(make_workspace)(
            cast, cast.bob, host="127.0.0.1", jupyter_port=upstream_port
        )
        connector = aiohttp.TCPConnector(resolver=Everywhere())
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as browser:
            yield Stage(cast, jupyter, workspace, port, browser)
    await in_thread(connections.close_all)()


# --- requests that browsers do not send, and answers that Jupyter does not give


def cookie(stage: Stage) -> str:
    return "; ".join(f"{cookie.key}={cookie.value}" for cookie in stage.browser.cookie_jar)


async def raw(stage: Stage, request: str, *headers: str, body: str = "") -> str:
    """Send these very bytes with the pass, and return Berth's answer."""
    host = f"Host: {stage.workspace.pk}.localhost:{stage.port}"
    lines = [request, host, f"Cookie: {cookie(stage)}", "Connection: close", *headers, "", body]
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
    writer.write("\r\n".join(lines).encode("latin-1"))
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return answer.decode("latin-1")


Spoken = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def jupyter_that(stage: Stage, speaks: Spoken) -> AsyncIterator[None]:
    """Replace the stage's Jupyter by one that answers as `speaks` does."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with suppress(ConnectionError):
            await speaks(reader, writer)
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    await in_thread(Workspace.objects.update)(jupyter_port=server.sockets[0].getsockname()[1])
    guests._known.clear()
    try:
        yield
    finally:
        server.close()


def that_says(text: str) -> Spoken:
    async def says(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text.encode("latin-1"))
        await writer.drain()

    return says
