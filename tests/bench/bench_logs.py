"""The collector with many pods that write, and readers of whom one is slow: stored = written"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import aiohttp
import psycopg

from portal.up.plan import REPOSITORY
from tests.bench import Figure
from tests.bench.helpers.parts import call, cpu_seconds, installation, memory_mib, rows_of, serving
from tests.e2e.stack import until
from tests.shared.ports import free_port

PODS, LINES_PER_SECOND, SECONDS, READERS = (
    int(part) for part in os.environ.get("BERTH_BENCH_LOGS", "200,100,60,50").split(",")
)
SLOW_SECONDS = 0.5  # the slow reader takes a line and then nothing for so long
CONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def measure() -> Iterator[Figure]:
    port = free_port()
    with installation() as (folder, environ), rows_of(folder) as rows:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(CONFIG % port)
        seeded = call(environ, "seeds.logs", str(kubeconfig), PODS)
        (folder / "pods.json").write_text(json.dumps(seeded))
        with serving(environ) as (web, web_port):
            yield from _run(folder, environ, rows, port, web, web_port, seeded)


def _run(
    folder: Path,
    environ: dict[str, str],
    rows: psycopg.Connection[Any],
    port: int,
    web: int,
    web_port: int,
    seeded: tuple[str, str, list[list[str]]],
) -> Iterator[Figure]:
    api = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.helpers.writing_pods", str(port), str(folder / "pods.json"),
         str(LINES_PER_SECOND), str(SECONDS)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert api.stdin is not None
    assert api.stdout is not None
    assert api.stdout.readline() == "serving\n"
    command = [sys.executable, "manage.py", "collect"]
    collector = subprocess.Popen(
        command, cwd=REPOSITORY, env={**environ, "BERTH_ROLE": "collector", "BERTH_LOG_LEVEL": "WARNING"}
    )
    try:
        until(
            "all logs are followed",
            lambda: _one(rows, "SELECT count(*) FROM workloads_logstream") == PODS,
            120,
        )
        memory, cpu = [memory_mib(collector.pid)], cpu_seconds(collector.pid)
        web_memory = memory_mib(web)
        readers = Readers(web_port, seeded[1], [pk for pk, _run_ in seeded[2]])
        api.stdin.write("\n")
        api.stdin.flush()
        heard = asyncio.run(readers.read_for(SECONDS, lambda: memory.append(memory_mib(collector.pid))))
        written, took = api.stdout.readline().split()
        began = time.monotonic()
        ended = "SELECT count(*) FROM workloads_logstream WHERE ended_at IS NOT NULL"
        until("all is stored", lambda: _one(rows, ended) == PODS, 300)
        behind = time.monotonic() - began
        spent = cpu_seconds(collector.pid) - cpu
        text = _one(rows, "SELECT sum(text_bytes) FROM workloads_logchunk") / 2**20
        yield Figure("pods", PODS, "")
        yield Figure("written", int(written), f"lines in {float(took):.0f} s")
        yield Figure("stored", _one(rows, "SELECT sum(lines) FROM workloads_logstream"), "lines")
        yield Figure("dropped", _one(rows, "SELECT sum(dropped) FROM workloads_logstream"), "lines")
        yield Figure("text", text, "MiB")
        yield Figure(
            "in the table", _one(rows, "SELECT sum(stored_bytes) FROM workloads_logchunk") / 2**20, "MiB"
        )
        yield Figure("stored and ended after the last line", behind, "s")
        yield Figure("collector: CPU", spent / text, "s per MiB of text")
        yield Figure("collector: memory at the begin", memory[0], "MiB")
        yield Figure("collector: memory in the middle", memory[len(memory) // 2], "MiB")
        yield Figure("collector: memory at the end", memory_mib(collector.pid), "MiB")
        yield Figure("web: memory at the begin", web_memory, "MiB")
        yield Figure("web: memory at the end", memory_mib(web), "MiB")
        yield Figure("readers", READERS, "")
        yield Figure("line to reader: median", median(heard) if heard else 0, "s")
        yield Figure("line to reader: p95", quantiles(heard, n=20)[-1] if len(heard) > 1 else 0, "s")
        missed = asyncio.run(readers.slow_one_reads_on())
        yield Figure("lines that the slow reader missed", missed, "")
    finally:
        for process in (collector, api):
            process.terminate()
            process.wait(20)


def _one(rows: psycopg.Connection[Any], query: str) -> Any:
    row = rows.execute(query).fetchone()
    return row[0] if row else None


class Readers:
    """Websockets of logs. The first is slow; afterwards it asks for what it has not read."""

    def __init__(self, port: int, session: str, workspaces: list[str]) -> None:
        self._port, self._workspaces = port, workspaces
        self._headers = {"Cookie": f"berth_session={session}", "Origin": f"http://127.0.0.1:{port}"}
        self._after, self._slow_count = "", 0
        self._late: list[float] = []

    def _path(self, number: int, after: str = "") -> str:
        workspace = self._workspaces[number % len(self._workspaces)]
        asked = f"?after={after}" if after else ""
        return f"http://127.0.0.1:{self._port}/ws/workspaces/{workspace}/logs/{asked}"

    async def read_for(self, seconds: float, now_and_then: Any) -> list[float]:
        async with aiohttp.ClientSession(headers=self._headers) as client:
            tasks = [asyncio.create_task(self._read(client, number)) for number in range(READERS)]
            for _ in range(int(seconds)):
                await asyncio.sleep(1)
                now_and_then()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return self._late

    async def _read(self, client: aiohttp.ClientSession, number: int) -> None:
        async with client.ws_connect(self._path(number), max_msg_size=2**20) as socket:
            async for message in socket:
                frame = json.loads(message.data)
                if frame["type"] != "line":
                    continue
                if number == 0:
                    self._after, self._slow_count = frame["after"], self._slow_count + 1
                    await asyncio.sleep(SLOW_SECONDS)
                else:
                    self._late.append(time.time() - float(frame["line"].rpartition(" ")[2]))

    async def slow_one_reads_on(self) -> int:
        """Return how many lines of its log the slow reader did not get, before and now."""
        count, expected = self._slow_count, LINES_PER_SECOND * SECONDS
        async with (
            aiohttp.ClientSession(headers=self._headers) as client,
            client.ws_connect(self._path(0, self._after)) as socket,
        ):
            while count < expected:
                try:
                    frame = json.loads((await asyncio.wait_for(socket.receive(), 20)).data)
                except TimeoutError:
                    break
                count += frame["type"] == "line"
        return expected - count
