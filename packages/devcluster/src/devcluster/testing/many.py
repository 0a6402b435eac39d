"""Load of thousands of pods on hundreds of nodes, and the memory and CPU that devcluster needs for it."""

import asyncio
import json
import os
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp

from devcluster.testing.cluster import DevCluster, is_ready, pod, stateful_set
from devcluster.testing.kube import PATCHES, Obj

NODES = "nodes: [{name: n, count: 500, cpu: 64, memory: 256Gi}]"
SPACE = "many"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
SETS = f"/apis/apps/v1/namespaces/{SPACE}/statefulsets"
WRITERS = 16


class Many:
    """Client whose connections stay open, so that measurements do not include handshakes."""

    def __init__(self, cluster: DevCluster):
        assert cluster.process is not None
        self._cluster, self._pid = cluster, cluster.process.pid

    async def __aenter__(self) -> Self:
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        self._session = aiohttp.ClientSession(
            self._cluster.url,
            headers={"Authorization": f"Bearer {self._cluster.token}"},
            connector=aiohttp.TCPConnector(ssl=tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_read=60),
            read_bufsize=2**20,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, body: Obj | None = None) -> Any:
        async with self._session.request(method, path, json=body) as answer:
            raw = await answer.read()
            assert answer.ok, raw[:500]
            return json.loads(raw)

    async def patch(self, path: str, body: Obj) -> None:
        headers = {"Content-Type": PATCHES["merge"]}
        async with self._session.patch(path, json=body, headers=headers) as answer:
            assert answer.ok, await answer.text()

    async def raw(self, path: str) -> int:
        """Return the size of an answer in bytes, without parsing it."""
        async with self._session.get(path) as answer:
            return len(await answer.read())

    @asynccontextmanager
    async def watch(self, path: str, version: str) -> AsyncIterator[AsyncIterator[Obj]]:
        query = {"watch": "1", "resourceVersion": version}
        async with self._session.get(path, params=query) as answer:
            yield _events(aiter(answer.content))

    async def create(self, pods: int) -> None:
        """Create half of the pods alone, half in StatefulSets of ten."""
        bodies = [(PODS, pod(f"p-{n}")) for n in range(pods // 2)]
        for n in range(pods // 20):
            workload = stateful_set(f"s-{n}", replicas=10)
            workload["spec"]["podManagementPolicy"] = "Parallel"
            bodies.insert(n * 11, (SETS, workload))
        await self.together(iter(bodies))

    async def together(self, bodies: Iterable[tuple[str, Obj]]) -> None:
        async def work() -> None:
            for path, body in bodies:
                await self.call("POST", path, body)

        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(work())

    async def until_ready(self, pods: int, version: str) -> None:
        ready: set[str] = set()
        async with self.watch(PODS, version) as events:
            async for event in events:
                if is_ready(event["object"]):
                    ready.add(event["object"]["metadata"]["name"])
                if len(ready) == pods:
                    return

    async def start(self, pods: int) -> float:
        """Create so many pods and wait until they are ready. Return the seconds that it took."""
        version = (await self.call("GET", PODS))["metadata"]["resourceVersion"]
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.until_ready(pods, version))
            group.create_task(self.create(pods))
        return time.monotonic() - began

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _events(lines: AsyncIterator[bytes]) -> AsyncIterator[Obj]:
    async for line in lines:
        yield json.loads(line)
