"""Faults of pressure: a node that is short of disk or memory ends one pod after the other until the fault ends."""

import asyncio
from collections.abc import Callable, Iterable

from devcluster.api import Api
from devcluster.disruption import disrupted
from devcluster.events import Recorder
from devcluster.fleet import PlayedNode
from devcluster.kubelet.admission import EVICTED
from devcluster.kubelet.status import Outcome
from devcluster.nodes import KUBELET
from devcluster.resources import POD, Obj
from devcluster.values.quantity import whole

BETWEEN_SECONDS = 1.0
"""From one eviction to the next; a real kubelet looks every 10 seconds."""
_RESOURCES = {"disk": "ephemeral-storage", "memory": "memory"}


class Reclaiming:
    """Eviction of pods from nodes under pressure. `pods` returns the pods of a node, `evict` ends one."""

    def __init__(self, api: Api, pods: Callable[[str], Iterable[Obj]], evict: Callable[[Obj, Outcome], None]):
        self._api, self._pods, self._evict = api, pods, evict
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def ailing(self, node: PlayedNode) -> None:
        if _resource(node) and node.name not in self._tasks:
            self._tasks[node.name] = asyncio.ensure_future(self._reclaim(node))

    async def _reclaim(self, node: PlayedNode) -> None:
        try:
            while resource := _resource(node):
                self._one(node, resource)
                await asyncio.sleep(BETWEEN_SECONDS)
        finally:
            del self._tasks[node.name]

    def _one(self, node: PlayedNode, resource: str) -> None:
        pods = sorted(self._pods(node.name), key=_rank)
        if node.silent or not pods:
            return
        events = Recorder(self._api, KUBELET, node.name, KUBELET)
        ref = {"kind": "Node", "name": node.name, "apiVersion": "v1"}
        events.about(ref, "Warning", "EvictionThresholdMet", f"Attempting to reclaim {resource}")
        why = Outcome(EVICTED, message(node, resource), level="Warning", grace_seconds=0)
        meta = pods[0]["metadata"]
        if found := self._api.store.get(POD, meta["namespace"], meta["name"]):
            self._api.set_status(POD, found, disrupted(found, "TerminationByKubelet", why.message), KUBELET)
        self._evict(pods[0], why)


def _resource(node: PlayedNode) -> str:
    return next((resource for name, resource in _RESOURCES.items() if node.presses(name)), "")


def _rank(pod: Obj) -> tuple[int, str]:
    """Return the sort key of evictions: the first pod goes first."""
    return pod["spec"].get("priority", 0), pod["metadata"]["name"]


def message(node: PlayedNode, resource: str) -> str:
    """Return the eviction's message with the kubelet's default thresholds: a tenth of the disk, 100Mi of memory."""
    tenth = whole(node.body["status"]["capacity"].get("ephemeral-storage", "0")) // 10
    threshold = str(tenth) if resource == "ephemeral-storage" else "100Mi"
    return f"The node was low on resource: {resource}. Threshold quantity: {threshold}, available: 0. "
