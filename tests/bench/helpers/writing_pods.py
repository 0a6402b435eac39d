"""An API server whose pods write: lists and watches them, and streams their logs. `python -m` it with the pods' file.

It prints a line once it serves, and when its pods have ended how many lines they wrote. It runs in a process of its
own: what it costs is not the collector's.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

TICK_SECONDS = 0.1


class Pods:
    def __init__(self, instance: str, pods: list[list[str]], lines_per_second: int, seconds: int) -> None:
        self._per_tick = max(1, round(lines_per_second * TICK_SECONDS))
        self._ticks = round(seconds / TICK_SECONDS)
        self.logs: dict[str, list[bytes]] = {f"ws-{pk}": [] for pk, _run in pods}
        self._bodies = [
            {
                "metadata": {
                    "name": f"ws-{pk}",
                    "namespace": "berth-demo",
                    "uid": pk,
                    "resourceVersion": "1",
                    "labels": {
                        "app.kubernetes.io/managed-by": "berth",
                        "berth.dev/instance": instance,
                        "berth.dev/workspace": pk,
                        "berth.dev/run": run,
                    },
                },
                "spec": {"nodeName": "node"},
                "status": {
                    "phase": "Running",
                    "containerStatuses": [{"name": "workspace", "restartCount": 0, "state": {"running": {}}}],
                },
            }
            for pk, run in pods
        ]
        self.is_over = asyncio.Event()

    async def write(self) -> None:
        began, number = time.monotonic(), 0
        for tick in range(self._ticks):
            stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
            for log in self.logs.values():
                log += [
                    f"{stamp} step {number + n} loss={(number + n) * 7919 % 9973 / 9973:.4f} images/s=1021 "
                    f"eta={tick} said at {time.time():.3f}\n".encode()
                    for n in range(self._per_tick)
                ]
            number += self._per_tick
            await asyncio.sleep(max(0.0, began + (tick + 1) * TICK_SECONDS - time.monotonic()))
        self.is_over.set()
        print(sum(map(len, self.logs.values())), time.monotonic() - began, flush=True)

    async def pods(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": self._bodies})
        response = web.StreamResponse()
        await response.prepare(request)
        await self.is_over.wait()
        for body in self._bodies:
            ended: dict[str, Any] = {**body, "status": {"phase": "Succeeded"}}
            await response.write(json.dumps({"type": "MODIFIED", "object": ended}).encode() + b"\n")
        await asyncio.sleep(3600)
        return response

    async def log(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        lines, place = self.logs[request.match_info["pod"]], 0
        since = request.query.get("sinceTime", "")
        while True:
            new, place = [line for line in lines[place:] if line[:20].decode() >= since[:19]], len(lines)
            if new:
                await response.write(b"".join(new))
            if (self.is_over.is_set() and place == len(lines)) or "follow" not in request.query:
                return response
            await asyncio.sleep(TICK_SECONDS)


async def main(port: int, path: str, lines_per_second: int, seconds: int) -> None:
    instance, _session, pods = json.loads(Path(path).read_text())
    writing = Pods(instance, pods, lines_per_second, seconds)
    app = web.Application()
    app.router.add_get("/api/v1/pods", writing.pods)
    app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/log", writing.log)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print("serving", flush=True)
    await asyncio.to_thread(sys.stdin.readline)  # until it is told to begin
    await writing.write()
    await asyncio.sleep(3600)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
