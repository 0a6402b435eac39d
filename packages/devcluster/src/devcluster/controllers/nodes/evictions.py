"""Taint eviction: pods leave a node with a NoExecute taint, at once or when their toleration ends."""

import asyncio
from collections.abc import Iterable

from devcluster.api import Api
from devcluster.controllers.base import Controller
from devcluster.disruption import disrupted
from devcluster.events import Recorder
from devcluster.resources import NODE, POD, Obj
from devcluster.scheduling.fitting import tolerated
from devcluster.store import Change

Key = tuple[str, str]


class TaintEviction(Controller[Key]):
    def __init__(self, api: Api):
        super().__init__(api)
        self._events = Recorder(api, "taint-eviction-controller")
        self._ends: dict[Key, float] = {}
        """When a pod's tolerance ends, by the loop's clock."""

    def keys(self, change: Change) -> Iterable[Key]:
        if change.kind is NODE:
            now, before = _taints(change.obj), _taints(change.old) if change.old else []
            if now != before and change.type != "DELETED":
                name = change.obj["metadata"]["name"]
                yield from (_key(p) for p in self.api.store.each(POD) if p["spec"].get("nodeName") == name)
        elif change.kind is POD and (change.type == "DELETED" or _moved(change.obj, change.old)):
            yield _key(change.obj)

    async def reconcile(self, key: Key) -> float | None:
        pod = self.api.store.get(POD, *key)
        node = self.api.store.get(NODE, "", pod["spec"].get("nodeName", "")) if pod else None
        taints = _taints(node) if node else []
        if pod is None or not taints:
            self._cancel(key)
            return None
        seconds = tolerance(pod, taints)
        if seconds is None:
            self._cancel(key)
            return None
        time = asyncio.get_running_loop().time()
        end = self._ends.setdefault(key, time + seconds) if seconds else time
        if end > time:
            return end - time
        self._ends.pop(key, None)
        self._evict(pod)
        return None

    def _cancel(self, key: Key) -> None:
        if self._ends.pop(key, None) is not None:
            self._tell(key, "Cancelling deletion of Pod")

    def _evict(self, pod: Obj) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            return
        self._tell(_key(pod), "Marking for deletion Pod")
        why = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        self.api.set_status(POD, pod, disrupted(pod, *why))
        self.api.try_delete(POD, pod)

    def _tell(self, key: Key, what: str) -> None:
        namespace, name = key
        ref = {"kind": "Pod", "namespace": namespace, "name": name, "apiVersion": "v1"}
        self._events.about(ref, "Normal", "TaintManagerEviction", f"{what} {namespace}/{name}")


def _key(pod: Obj) -> Key:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _moved(new: Obj, old: Obj | None) -> bool:
    """Return True if the pod got a node, or if its tolerations changed."""
    if not new["spec"].get("nodeName"):
        return False
    return old is None or any(
        new["spec"].get(part) != old["spec"].get(part) for part in ("nodeName", "tolerations")
    )


def _taints(node: Obj) -> list[Obj]:
    return [t for t in node["spec"].get("taints", []) if t["effect"] == "NoExecute"]


def tolerance(pod: Obj, taints: list[Obj]) -> float | None:
    """Return for how many seconds the pod tolerates all of these taints; None without a limit."""
    shortest: float | None = None
    for taint in taints:
        bearing = [t for t in pod["spec"].get("tolerations") or [] if tolerated(taint, {"tolerations": [t]})]
        if not bearing:
            return 0
        limits = [t["tolerationSeconds"] for t in bearing if t.get("tolerationSeconds") is not None]
        if limits:
            shortest = max(min(limits if shortest is None else [shortest, *limits]), 0)
    return shortest
