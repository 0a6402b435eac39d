"""An API server with one pod's log: it cuts streams, answers errors, and takes `sinceTime` by the second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from aiohttp import web
from kubernetes.client import ApiClient, Configuration

from clusters.api import Api
from clusters.log_streams import LogStreams
from clusters.transport import Transport
from workloads.logs.chunks import Entry
from workloads.logs.intake import SECOND, nanoseconds


def stamped(entry: Entry) -> bytes:
    second = datetime.fromtimestamp(entry.ns // SECOND, UTC)
    return f"{second:%Y-%m-%dT%H:%M:%S}.{entry.ns % SECOND:09d}Z {entry.text}".encode()


@dataclass
class LogServer:
    """Log of a container. `cuts`: after so many bytes a stream breaks; the later ones are whole."""

    log: list[Entry] = field(default_factory=list)
    before: list[Entry] = field(default_factory=list)  # of the container's run before
    is_over: bool = False
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    sent_bytes: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        self.asked.append(query)
        if self.statuses and (status := self.statuses.pop(0)) != 200:
            return web.json_response(
                {"message": "not now", "reason": "Oops"}, status=status, headers={"Retry-After": "7"}
            )
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        cut = self.cuts.pop(0) if self.cuts else None
        since = nanoseconds(query["sinceTime"]) if "sinceTime" in query else 0
        log, place, sent = self.before if "previous" in query else self.log, 0, 0
        while True:
            content = b"".join(stamped(one) + b"\n" for one in log[place:] if one.ns >= since)
            place = len(log)
            if cut is not None and sent + len(content) >= cut:
                await response.write(content[: cut - sent])
                assert request.transport is not None
                request.transport.abort()
                return response
            if content:
                await response.write(content)
                sent += len(content)
                self.sent_bytes += len(content)
            if "follow" not in query or self.is_over:
                return response
            await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(server: LogServer) -> AsyncIterator[LogStreams]:
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/log", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    configuration = Configuration(host=f"http://127.0.0.1:{runner.addresses[0][1]}")
    streams = LogStreams(Api(Transport(ApiClient(configuration))))
    try:
        yield streams
    finally:
        await streams.close()
        await runner.cleanup()
