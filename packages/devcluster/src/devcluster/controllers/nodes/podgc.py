"""Pod garbage collection: pods of a node that is gone, or that no kubelet will ever end."""

import asyncio
from collections.abc import Iterable

from devcluster.api import Api
from devcluster.controllers.base import Controller
from devcluster.controllers.nodes.lifecycle import ready
from devcluster.disruption import disrupted
from devcluster.nodes import Lifecycle
from devcluster.resources import NODE, POD, Obj
from devcluster.store import Change

Key = tuple[str, str]
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class PodGarbageCollector(Controller[Key]):
    def __init__(self, api: Api, lifecycle: Lifecycle):
        super().__init__(api)
        self._quarantine_seconds = lifecycle.orphan_seconds
        self._missing: dict[str, float] = {}
        """Since when a node that pods name is not there."""

    def keys(self, change: Change) -> Iterable[Key]:
        if change.kind is POD and change.type != "DELETED":
            node = change.obj["spec"].get("nodeName")
            going = "deletionTimestamp" in change.obj["metadata"]
            if going or (node and self.api.store.get(NODE, "", node) is None):
                yield change.obj["metadata"]["namespace"], change.obj["metadata"]["name"]
        elif change.kind is NODE:
            name = change.obj["metadata"]["name"]
            if change.type == "ADDED":
                self._missing.pop(name, None)
            if change.type == "DELETED" or _out_of_service(change.obj):
                for pod in self.api.store.each(POD):
                    if pod["spec"].get("nodeName") == name:
                        yield pod["metadata"]["namespace"], pod["metadata"]["name"]

    async def reconcile(self, key: Key) -> float | None:
        pod = self.api.store.get(POD, *key)
        if pod is None:
            return None
        name, going = pod["spec"].get("nodeName"), "deletionTimestamp" in pod["metadata"]
        node = self.api.store.get(NODE, "", name) if name else None
        if name and node is None:
            return self._orphan(pod, name)
        if going and (node is None or (_out_of_service(node) and ready(node) != "True")):
            self._end(pod, pod["status"])
        return None

    def _orphan(self, pod: Obj, node: str) -> float | None:
        time = asyncio.get_running_loop().time()
        left = self._missing.setdefault(node, time) + self._quarantine_seconds - time
        if left > 0:
            return left
        self._end(pod, disrupted(pod, "DeletionByPodGC", "PodGC: node no longer exists"))
        return None

    def _end(self, pod: Obj, status: Obj) -> None:
        """Set the pod to Failed before its deletion: no kubelet will report how it ended."""
        if status.get("phase") not in ("Succeeded", "Failed"):
            self.api.set_status(POD, pod, status | {"phase": "Failed"})
        self.api.try_delete(POD, pod, grace_seconds=0)


def _out_of_service(node: Obj) -> bool:
    return any(t["key"] == OUT_OF_SERVICE for t in node["spec"].get("taints", []))
