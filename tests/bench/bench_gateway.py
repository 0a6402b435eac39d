"""JupyterLab through Berth, beside the same asked directly"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from statistics import median

import aiohttp
from aiohttp import web

from tests.bench import Figure
from tests.bench.helpers.parts import call, cpu_seconds, installation, memory_mib, serving, spread
from tests.shared.ports import free_port

SIZE_MIB = 1024
TIMES = 9
SOCKETS = 200
ROUNDS = 20
AGAIN = 5
SLOW_READERS = 20
PIECE = b"x" * 2**20
MESSAGE = "x" * 200


def measure() -> Iterator[Figure]:
    jupyter = free_port()
    upstream = multiprocessing.get_context("spawn").Process(target=_jupyter, args=(jupyter,))
    upstream.start()
    try:
        with installation() as (_folder, environ), serving(environ) as (pid, port):
            workspace, secret = call(environ, "seeds.gateway", jupyter)
            headers = {"Host": f"{workspace}.localhost:{port}", "Cookie": f"berth_pass={secret}"}
            through = f"http://127.0.0.1:{port}", headers
            yield from asyncio.run(_all((f"http://127.0.0.1:{jupyter}", {}), through, pid))
    finally:
        upstream.terminate()
        upstream.join()


Place = tuple[str, dict[str, str]]


async def _all(direct: Place, through: Place, pid: int) -> list[Figure]:
    await _download(through, 1)  # memory for what is loaded once is no growth
    before = memory_mib(pid)
    figures = await _downloads(direct, through, pid)
    after_downloads = memory_mib(pid)
    figures += (await _echoes("direct", direct, pid))[0]
    echoes, with_sockets = await _echoes("through Berth", through, pid)
    closed = memory_mib(pid)
    for _ in range(AGAIN):
        await _echoes("through Berth", through, pid)
    again = memory_mib(pid)
    beside, rate, with_slow_readers = await _beside_slow_readers(through, pid)
    return [
        *figures,
        *echoes,
        Figure("memory of the web process before", before, "MiB"),
        Figure(f"after {TIMES} downloads", after_downloads, "MiB"),
        Figure(f"with {SOCKETS} sockets open", with_sockets, "MiB"),
        Figure("when they are closed", closed, "MiB"),
        Figure(f"when {AGAIN} times as many came and went", again, "MiB"),
        *beside,
        Figure(f"{SIZE_MIB} MiB beside {SLOW_READERS} slow readers", rate, "MiB/s"),
        Figure(f"memory with {SLOW_READERS} slow readers", with_slow_readers, "MiB"),
    ]


async def _downloads(direct: Place, through: Place, pid: int) -> list[Figure]:
    """Download several times, in turn: on a busy machine the same download can take three times as long."""
    spent = cpu_seconds(pid)
    pairs = [(await _download(direct, SIZE_MIB), await _download(through, SIZE_MIB)) for _ in range(TIMES)]
    spent = cpu_seconds(pid) - spent
    figures = []
    for what, rates in zip(("direct", "through Berth"), zip(*pairs, strict=True), strict=True):
        found = {"slowest": min(rates), "median": median(rates), "fastest": max(rates)}
        figures += [Figure(f"{SIZE_MIB} MiB {what}, {name}", rate, "MiB/s") for name, rate in found.items()]
    shares = [100 * slow / fast for fast, slow in pairs]
    found = {"least": min(shares), "median": median(shares), "most": max(shares)}
    figures += [Figure(f"through Berth beside direct, {name}", value, "%") for name, value in found.items()]
    return [*figures, Figure("CPU of the web process for a GiB", spent / TIMES * 1024 / SIZE_MIB, "s")]


async def _download(place: Place, mib: int) -> float:
    """Return MiB per second."""
    address, headers = place
    began = time.monotonic()
    async with (
        aiohttp.ClientSession(headers=headers, read_bufsize=2**20) as browser,
        browser.get(f"{address}/download?mib={mib}") as answer,
    ):
        size = 0
        async for piece in answer.content.iter_any():
            size += len(piece)
    assert size == mib * 2**20
    return mib / (time.monotonic() - began)


async def _echoes(what: str, place: Place, pid: int) -> tuple[list[Figure], float]:
    """Measure echoes over all open sockets in turn. Return figures and the web process's memory at the end."""
    address, headers = place
    took: list[float] = []
    browser = aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0))
    sockets = [await browser.ws_connect(f"{address}/socket") for _ in range(SOCKETS)]
    for _ in range(ROUNDS):
        for socket in sockets:
            began = time.perf_counter()
            await socket.send_str(MESSAGE)
            assert await socket.receive_str() == MESSAGE
            took.append(time.perf_counter() - began)
    memory = memory_mib(pid)
    await asyncio.gather(*(socket.close() for socket in sockets))
    await browser.close()
    return spread(f"an echo with {SOCKETS} sockets open, {what}", took), memory


async def _beside_slow_readers(place: Place, pid: int) -> tuple[list[Figure], float, float]:
    """Measure echoes and a download while other clients have begun downloads and stopped reading."""
    address, headers = place
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0)) as browser:
        stalled = [await browser.get(f"{address}/download?mib={SIZE_MIB}") for _ in range(SLOW_READERS)]
        echoes, memory = await _echoes(f"beside {SLOW_READERS} slow readers", place, pid)
        rate = await _download(place, SIZE_MIB)
        for answer in stalled:
            answer.close()
    return echoes, rate, memory


# --- the server that is measured


def _jupyter(port: int) -> None:
    async def download(request: web.Request) -> web.StreamResponse:
        mib = int(request.query["mib"])
        answer = web.StreamResponse(headers={"Content-Length": str(mib * 2**20)})
        await answer.prepare(request)
        for _ in range(mib):
            await answer.write(PIECE)
        return answer

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket

    app = web.Application()
    app.router.add_get("/download", download)
    app.router.add_get("/socket", echo)
    web.run_app(app, host="127.0.0.1", port=port, print=None)
