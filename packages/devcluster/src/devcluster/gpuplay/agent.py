"""Simulated agent: one stream of reports per node with GPUs, by the API of the real agent, marked as simulated.

Its batches have the shape of the real agent's (tests check them against its schema) and contain `"simulated": true`.
A report stays in a bounded spool until the portal accepts it. A change of a fault is reported at once.
"""

import asyncio
import contextlib
import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from devcluster.api import Api
from devcluster.fleet import KUBELET_SILENT, SILENT, WITHOUT_GPUS, Fleet, PlayedNode
from devcluster.gpuplay.ailments import of_card
from devcluster.gpuplay.devices import Devices, Holding
from devcluster.gpuplay.hardware import inventory
from devcluster.gpuplay.lives import Life
from devcluster.gpuplay.readings import Gauge
from devcluster.gpuplay.users import CoresOf, processes
from devcluster.resources import POD, Obj

log = logging.getLogger("devcluster")
PATH = "/api/v1/agent/samples/"
VERSION = 1
EVERY_SECONDS = 3.0
PUSHES_PER_SECOND = 4.0
"""At most so many, over all nodes."""
KEPT_SECONDS, LEAST_KEPT = 600.0, 10
"""Reports of so long are kept while the portal is away, or at least so many."""
BATCH = 100
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 8.0
CONNECTIONS = 4
TIMEOUT_SECONDS = 10
_REFUSED_FOR_GOOD = frozenset({400, 413, 422})
_DETAILS = {
    "library_missing": "library_not_found; driver not loaded",
    "driver_not_loaded": "driver_not_loaded; driver not loaded",
    "version_mismatch": "lib_rm_version_mismatch; driver {driver}",
    "device_files_missing": "driver_not_loaded; driver {driver}",
    "no_permission": "no_permission; driver {driver}",
    "nvml_failed": "unknown; driver {driver}",
    "nvml_hangs": "nvmlInit_v2 has not returned for 30 s",
    "gpu_lost": "gpu_is_lost; driver {driver}",
    "uvm_missing": "/dev/nvidia-uvm",
    "devices_denied": "/dev/nvidiactl",
    "xids_unwatched": "not_supported",
    KUBELET_SILENT: "/var/lib/kubelet/pod-resources/kubelet.sock: connection refused",
}


# Use of the claims that pods of a node mount, by the node's name.
UsesOf = Callable[[str], list[Obj]]
MEASURE_SECONDS = 15


@dataclass(frozen=True)
class Portal:
    """Address for reports, and the file with the token, which is read again for each push."""

    address: str
    token_file: Path


class Looker:
    """Sampler for the agent of one node."""

    def __init__(
        self,
        api: Api,
        node: PlayedNode,
        devices: Devices,
        cores_of: CoresOf,
        life: str,
        uses_of: UsesOf = lambda node: [],
    ):
        self._uses_of, self._measured_at = uses_of, 0.0
        self._api, self._node, self._devices, self._cores_of = api, node, devices, cores_of
        self._cards = devices.cards[node.name]
        self._life = Life.read((node.gpus or {}).get("life", life))
        self._gauges = [Gauge(card) for card in self._cards]
        self.inventory = inventory(self._cards, node.body["metadata"]["labels"])

    def look(self, at: float) -> Obj:
        driver = self.inventory["driver_version"]
        codes = sorted(self._node.agent - {SILENT})
        troubles = [{"code": code, "detail": _DETAILS[code].format(driver=driver)} for code in codes]
        held = self._devices.held(self._node.name)
        blind = not self._node.agent.isdisjoint(WITHOUT_GPUS)
        seen: Obj = {"taken_at": at, "troubles": troubles, "gpus": [] if blind else self._gpus(held, at)}
        if KUBELET_SILENT not in self._node.agent:
            seen["holdings"] = [_holding(holding) for holding in held]
        seen["xids"] = [] if blind else list(self._node.xids)
        self._node.xids.clear()
        if at >= self._measured_at + MEASURE_SECONDS:
            self._measured_at, seen["volumes"] = at, self._uses_of(self._node.name)
        return seen

    def _gpus(self, held: list[Holding], at: float) -> list[Obj]:
        busy = processes(held, self._cards, self._pod_of, self._cores_of, self._life, at)
        return [
            gauge.read(busy.get(gauge.card.uuid, []), of_card(self._node, gauge.card.index), at)
            for gauge in self._gauges
        ]

    def _pod_of(self, holding: Holding) -> Obj | None:
        return self._api.store.get(POD, holding.namespace, holding.pod)


def _holding(held: Holding) -> Obj:
    found: Obj = {"namespace": held.namespace, "pod": held.pod, "container": held.container}
    found |= {"resource": held.resource, "device": held.device.id}
    return found | ({"uuid": held.device.uuid} if held.device.uuid else {})


class Stream:
    """Spool and sender of one node's reports."""

    def __init__(self, node: PlayedNode, looker: Looker, portal: Portal, every_seconds: float):
        self._woken = asyncio.Event()
        self._node, self._looker, self._portal, self._every_seconds = node, looker, portal, every_seconds
        self._spool: deque[tuple[int, str]] = deque()
        self._most = max(round(KEPT_SECONDS / every_seconds), LEAST_KEPT)
        self._wait = FIRST_WAIT_SECONDS
        self._next_look = 0.0
        self._begin()

    def wake(self) -> None:
        """Sample and send at once."""
        self._next_look = 0.0
        self._woken.set()

    def _begin(self) -> None:
        """Begin as a new agent process of the node's present boot."""
        self._agent, self._boot_id = os.urandom(8).hex(), self._node.boot_id
        self._sequence = self._dropped = 0
        self._spool.clear()

    async def run(self, session: ClientSession, first_wait_seconds: float) -> None:
        await asyncio.sleep(first_wait_seconds)
        while True:
            self._woken.clear()
            try:
                pause = await self.step(session)
            except Exception:  # an error of one node's stream must not stop the others
                log.exception("simulated agent of %s", self._node.name)
                pause = self._every_seconds
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), pause)

    async def step(self, session: ClientSession) -> float:
        """Sample if it is time, send what can be sent. Return the seconds until the next step."""
        if self._boot_id != self._node.boot_id:
            self._begin()
        if self._node.stopped or SILENT in self._node.agent:
            return self._every_seconds
        if time.monotonic() >= self._next_look:
            self.look()
            self._next_look = time.monotonic() + self._every_seconds
        if self._node.silent or await self._push(session):
            self._wait = FIRST_WAIT_SECONDS
            return max(self._next_look - time.monotonic(), 0.0)
        wait, self._wait = self._wait, min(2 * self._wait, LONGEST_WAIT_SECONDS)
        return wait

    def look(self) -> None:
        report = self._looker.look(time.time())
        self._sequence += 1
        self._spool.append((self._sequence, json.dumps(report | {"sequence": self._sequence})))
        while len(self._spool) > self._most:
            self._spool.popleft()
            self._dropped += 1

    async def _push(self, session: ClientSession) -> bool:
        """Send one batch. Return False if the portal did not accept it; wake the stream at once for the rest."""
        sent = list(self._spool)[:BATCH]
        if not sent:
            return True
        try:
            headers = {
                "Authorization": f"Bearer {self._portal.token_file.read_text().strip()}",
                "Content-Type": "application/json",
            }
            url = self._portal.address.rstrip("/") + PATH
            async with session.post(
                url, data=self.batch([text for _, text in sent]), headers=headers
            ) as answer:
                status = answer.status
        except (OSError, ClientError, TimeoutError, ValueError):
            return False
        if status in _REFUSED_FOR_GOOD:
            self._dropped += len(sent)
        elif not 200 <= status < 300:
            return False
        while self._spool and self._spool[0][0] <= sent[-1][0]:
            self._spool.popleft()
        if self._spool:
            self._woken.set()
        return True

    def batch(self, reports: list[str]) -> bytes:
        head: Obj = {
            "version": VERSION,
            "node": self._node.name,
            "agent": self._agent,
            "sent_at": time.time(),
            "dropped": self._dropped,
            "simulated": True,
            "inventory": self._looker.inventory,
        }
        return f'{json.dumps(head)[:-1]}, "reports": [{",".join(reports)}]}}'.encode()


class SimulatedAgents:
    """Simulated agents of all nodes with GPUs."""

    def __init__(
        self,
        api: Api,
        fleet: Fleet,
        devices: Devices,
        portal: Portal,
        *,
        cores_of: CoresOf,
        life: str,
        uses_of: UsesOf,
    ):
        nodes = [node for node in fleet if node.gpus]
        every = max(EVERY_SECONDS, len(nodes) / PUSHES_PER_SECOND)
        self._streams = {
            node.name: Stream(node, Looker(api, node, devices, cores_of, life, uses_of), portal, every)
            for node in nodes
        }
        self._every_seconds = every
        fleet.listen(self._ailing)

    def _ailing(self, node: PlayedNode) -> None:
        if stream := self._streams.get(node.name):
            stream.wake()

    async def run(self) -> None:
        """Run all streams, with their starts spread over one interval."""
        apart = self._every_seconds / max(len(self._streams), 1)
        async with (
            ClientSession(
                timeout=ClientTimeout(total=TIMEOUT_SECONDS), connector=TCPConnector(limit=CONNECTIONS)
            ) as session,
            asyncio.TaskGroup() as group,
        ):
            for n, stream in enumerate(self._streams.values()):
                group.create_task(stream.run(session, n * apart))
