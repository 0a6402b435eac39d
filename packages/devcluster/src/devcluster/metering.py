"""CPU and memory use of pods and nodes, measured every few seconds, as metrics-server measures it.

CPU use is a rate: it needs two measurements of a container, or one of a container that has run for a while. A pod has
figures only if each of its containers has; a node whose kubelet is silent has none.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from devcluster.faults.registry import Fault, Switch, one_of
from devcluster.fleet import Fleet
from devcluster.kubelet.processes.usage import NOTHING, Usage
from devcluster.kubelet.runtime import Container, Runtime
from devcluster.resources import POD, Obj
from devcluster.store import Store

FRESH = 0.5
"""A container that has run for so much of the pause between two looks has figures without a look before."""
STATES = ("absent", "unavailable")


class Running(Protocol):
    def containers(self, pod: Obj) -> Mapping[str, Container]:
        """Return the running containers of a pod by name."""


@dataclass(frozen=True)
class Look:
    """Measurement of a container. `at` is a time of this machine's monotonic clock."""

    at: float
    usage: Usage


@dataclass(frozen=True)
class Figures:
    at: datetime
    window_seconds: float
    cpu_cores: float
    memory_bytes: int


Measured = dict[str, Figures]
"""Of a pod, by container."""


class Metering:
    def __init__(self, store: Store, fleet: Fleet, running: Running, runtime: Runtime, every_seconds: float):
        self._store, self._fleet, self._running, self._runtime = store, fleet, running, runtime
        self._every_seconds = every_seconds
        self._looks: dict[str, Look] = {}
        self._pods: dict[str, Measured] = {}
        self._nodes: dict[str, Figures] = {}
        self._faults: list[str] = []
        self.switch = Switch(("metrics",), frozenset(), self._begin)

    @property
    def state(self) -> str:
        """Fault of the metrics API, one of STATES; empty if there is none."""
        return next(iter(self._faults), "")

    def of_pod(self, pod: Obj) -> Measured | None:
        return self._pods.get(pod["metadata"]["uid"]) if _runs(pod) else None

    def of_node(self, name: str) -> Figures | None:
        return self._nodes.get(name)

    def cores_of(self, pod_uid: str) -> float:
        return sum(figures.cpu_cores for figures in self._pods.get(pod_uid, {}).values())

    async def run(self) -> None:
        while True:
            await self._measure()
            await asyncio.sleep(self._every_seconds)

    async def _measure(self) -> None:
        pods = [pod for pod in self._store.each(POD) if _runs(pod) and self._fleet.speaks(_node(pod))]
        containers = {pod["metadata"]["uid"]: dict(self._running.containers(pod)) for pod in pods}
        usage = await self._runtime.measure([c for found in containers.values() for c in found.values()])
        at, wall = time.monotonic(), datetime.now(UTC)
        looks = {container_id: Look(at, used) for container_id, used in usage.items()}
        figures = {
            uid: {name: self._rate(container, looks, wall) for name, container in found.items()}
            for uid, found in containers.items()
        }
        self._looks = looks
        self._pods = {
            uid: whole for uid, found in figures.items() if (whole := _whole(found, containers[uid]))
        }
        self._nodes = self._of_nodes(pods, wall)

    def _rate(self, container: Container, looks: dict[str, Look], wall: datetime) -> Figures | None:
        now = looks.get(container.id)
        if now is None:
            return None
        before = self._looks.get(container.id) or Look(container.began, NOTHING)
        window = now.at - before.at
        if window < self._every_seconds * FRESH:
            return None
        spent = max(now.usage.cpu_seconds - before.usage.cpu_seconds, 0.0)
        return Figures(wall, window, spent / window, now.usage.memory_bytes)

    def _of_nodes(self, pods: list[Obj], wall: datetime) -> dict[str, Figures]:
        """Return each node's use as the sum of its pods: nothing else runs on a simulated node."""
        cpu: dict[str, float] = defaultdict(float)
        memory: dict[str, int] = defaultdict(int)
        for pod in pods:
            for figures in self._pods.get(pod["metadata"]["uid"], {}).values():
                cpu[_node(pod)] += figures.cpu_cores
                memory[_node(pod)] += figures.memory_bytes
        heard = [node.name for node in self._fleet if self._fleet.speaks(node.name)]
        return {name: Figures(wall, self._every_seconds, cpu[name], memory[name]) for name in heard}

    def _begin(self, fault: Fault) -> Callable[[], None]:
        state = one_of(fault.spec, "metrics", STATES)
        self._faults.append(state)
        return lambda: self._faults.remove(state)


def _whole(found: dict[str, Figures | None], containers: dict[str, Container]) -> Measured:
    known = {name: figures for name, figures in found.items() if figures is not None}
    return known if len(known) == len(containers) else {}


def _runs(pod: Obj) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Running")


def _node(pod: Obj) -> str:
    return str(pod["spec"].get("nodeName", ""))
