"""A devcluster of 500 nodes and 5,000 played pods"""

import asyncio
import time
from collections.abc import Iterator

from devcluster.testing.cluster import DevCluster, running
from devcluster.testing.kube import Obj
from devcluster.testing.many import NODES, PODS, SPACE, Many
from tests.bench import Figure
from tests.bench.helpers.parts import spread, temporary

COUNT = 5000
CHANGES = 40
IDLE_SECONDS = 20


def measure() -> Iterator[Figure]:
    with temporary() as folder:
        for cluster in running(folder, "--pods", "played", nodes=NODES):
            yield from asyncio.run(_all(cluster))


async def _all(cluster: DevCluster) -> list[Figure]:
    cluster.namespace(SPACE)
    async with Many(cluster) as many:
        figures = [Figure("memory with nodes alone", many.memory_mib(), "MiB")]
        figures += await _start(many)
        figures += await _lists(many)
        figures += [*await _lag(many, watchers=1), *await _lag(many, watchers=50)]
        await asyncio.sleep(5)
        before = many.cpu_seconds()
        await asyncio.sleep(IDLE_SECONDS)
        idle = (many.cpu_seconds() - before) / IDLE_SECONDS * 100
        return [
            *figures,
            Figure("idle", idle, "% of a core"),
            Figure("memory at most", many.memory_mib(), "MiB"),
        ]


async def _start(many: Many) -> list[Figure]:
    """Start all pods at once, while another client asks for a small object twenty times a second."""
    waits: list[float] = []

    async def ask() -> None:
        while True:
            began = time.monotonic()
            await many.call("GET", f"/api/v1/namespaces/{SPACE}")
            waits.append(time.monotonic() - began)
            await asyncio.sleep(0.05)

    before, asking = many.cpu_seconds(), asyncio.create_task(ask())
    took = await many.start(COUNT)
    asking.cancel()
    spent = many.cpu_seconds() - before
    return [
        Figure("from the first pod asked for to the last one ready", took, "s"),
        Figure("CPU for each pod", spent / COUNT * 1000, "ms"),
        *spread("a small GET meanwhile", waits),
    ]


async def _lists(many: Many) -> list[Figure]:
    figures = []
    for what, query in (("all pods in one list", ""), ("the first 500 of them", "?limit=500")):
        began = time.monotonic()
        size = await many.raw(PODS + query)
        figures.append(Figure(f"{what} ({size / 2**20:.1f} MiB)", (time.monotonic() - began) * 1000, "ms"))
    return figures


async def _lag(many: Many, watchers: int) -> list[Figure]:
    """Measure the time from the request for a change to its frame at each watcher."""
    version = (await many.call("GET", f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
    open_ = asyncio.Semaphore(0)
    asked: dict[str, float] = {}
    lags: list[float] = []

    def arrived(event: Obj) -> None:
        mark = event["object"]["metadata"].get("annotations", {}).get("mark", "")
        if mark in asked:
            lags.append(time.monotonic() - asked[mark])

    async def follow() -> None:
        async with many.watch(PODS, version) as events:
            open_.release()
            async for event in events:
                arrived(event)

    following = [asyncio.create_task(follow()) for _ in range(watchers)]
    for _ in following:
        await open_.acquire()
    for n in range(CHANGES):
        mark = f"{watchers}-{n}"
        asked[mark] = time.monotonic()
        await many.patch(f"{PODS}/p-{n}", {"metadata": {"annotations": {"mark": mark}}})
        await asyncio.sleep(0.02)
    await asyncio.sleep(1)
    for task in following:
        task.cancel()
    return spread(f"a change's way to {watchers} watcher{'s' if watchers > 1 else ''}", lags)
