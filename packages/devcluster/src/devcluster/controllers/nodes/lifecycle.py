"""Node lifecycle: kubelets that still report, and the effect of their silence on conditions, taints and pods."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.events import Recorder, reference
from devcluster.fleet import LEASES, Fleet, PlayedNode
from devcluster.nodes import Lifecycle
from devcluster.resources import LEASE, NODE, POD, Obj
from devcluster.store import Change
from devcluster.values.clock import now

PREFIX = "node.kubernetes.io/"
NOT_READY, UNREACHABLE, UNSCHEDULABLE = f"{PREFIX}not-ready", f"{PREFIX}unreachable", f"{PREFIX}unschedulable"
_TAINTS = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): f"{PREFIX}memory-pressure",
    ("DiskPressure", "True"): f"{PREFIX}disk-pressure",
    ("NetworkUnavailable", "True"): f"{PREFIX}network-unavailable",
    ("PIDPressure", "True"): f"{PREFIX}pid-pressure",
}
_JUDGED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_NEVER = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
_STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")


@dataclass
class _Seen:
    uid: str
    beat: tuple[str, str] = ("", "")
    """The last heartbeat and renewal that were seen; not their times count but when they changed."""
    silent: bool = False
    """Whether it is played here and not heard: its leases are not looked at, they come too rarely."""
    at: float = field(default_factory=lambda: asyncio.get_running_loop().time())


class NodeController(Controller[str]):
    def __init__(self, api: Api, fleet: Fleet, lifecycle: Lifecycle):
        super().__init__(api)
        self._fleet, self._lifecycle = fleet, lifecycle
        self._events = Recorder(api, "node-controller")
        self._seen: dict[str, _Seen] = {}
        self._ready: set[str] = set()
        fleet.listen(self._ailing)

    def keys(self, change: Change) -> Iterable[str]:
        name = change.obj["metadata"]["name"]
        if change.kind is NODE:
            yield name
            yield from self._count(name, change.type != "DELETED" and ready(change.obj) == "True")
        elif (
            change.kind is LEASE
            and change.obj["metadata"]["namespace"] == LEASES
            and not self._fleet.get(name)
        ):
            yield name

    def _count(self, name: str, is_ready: bool) -> Iterable[str]:
        """Yield all nodes when the last ready one is lost or the first is back: then the taints of all change."""
        before = bool(self._ready)
        (self._ready.add if is_ready else self._ready.discard)(name)
        if before != bool(self._ready):
            yield from (node["metadata"]["name"] for node in self.api.store.each(NODE))

    def _ailing(self, node: PlayedNode) -> None:
        seen = self._seen.get(node.name)
        if seen and seen.silent != node.silent:
            seen.silent, seen.at = node.silent, asyncio.get_running_loop().time()
        self.add(node.name)

    async def reconcile(self, key: str) -> float | None:
        node = self.api.store.get(NODE, "", key)
        seen = self._seen.get(key)
        if seen and (node is None or node["metadata"]["uid"] != seen.uid):
            ref = {"kind": "Node", "name": key, "uid": seen.uid, "apiVersion": "v1"}
            self._tell(ref, "RemovingNode", f"Removing Node {key} from Controller")
            del self._seen[key]
        if node is None:
            return None
        if key not in self._seen:
            self._seen[key] = _Seen(node["metadata"]["uid"])
            self._tell(_reference(node), "RegisteredNode", f"Registered Node {key} in Controller")
        again = self._judge(node)
        self._taint(key)
        return again

    def _tell(self, ref: Obj, reason: str, what: str) -> None:
        self._events.about(ref, "Normal", reason, f"Node {ref['name']} event: {what}")

    def _judge(self, node: Obj) -> float | None:
        """Set a node whose kubelet is silent too long to Unknown; else return the seconds until the next check."""
        name, loop = node["metadata"]["name"], asyncio.get_running_loop()
        seen, speaks = self._seen[name], self._fleet.speaks(name)
        beat = self._beat(node)
        if speaks or beat != seen.beat:
            seen.beat, seen.at = beat, loop.time()
        known = bool(ready(node))
        grace = self._lifecycle.grace_seconds if known else self._lifecycle.startup_seconds
        left = seen.at + grace - loop.time()
        if speaks or ready(node) == "Unknown":
            return None
        if left > 0:
            return left
        self.api.set_status(NODE, node, node["status"] | {"conditions": unknown(node)})
        if ready(node) == "True":
            told = f"Node {name} status is now: NodeNotReady"
            self._events.about(_reference(node), "Normal", "NodeNotReady", told)
            self._unready_pods(name)
        return None

    def _beat(self, node: Obj) -> tuple[str, str]:
        beats = [
            c.get("lastHeartbeatTime") or ""
            for c in node["status"].get("conditions", [])
            if c["type"] == "Ready"
        ]
        lease = self.api.store.get(LEASE, LEASES, node["metadata"]["name"])
        return "".join(beats), (lease or {}).get("spec", {}).get("renewTime") or ""

    def _unready_pods(self, node: str) -> None:
        """Mark the node's pods as not ready, so that no Service sends them traffic."""
        for pod in self.api.store.each(POD):
            conditions = pod.get("status", {}).get("conditions", [])
            if pod["spec"].get("nodeName") != node or not any(_holds(c) for c in conditions):
                continue
            lost = {"status": "False", "lastTransitionTime": now()}
            changed = [c | lost if _holds(c) else c for c in conditions]
            told = self.api.set_status(POD, pod, pod["status"] | {"conditions": changed})
            self._events.event(POD, told or pod, "Warning", "NodeNotReady", "Node is not ready")

    def _taint(self, name: str) -> None:
        node = self.api.get(NODE, "", name)
        taints = settled(node, evicting=bool(self._ready))
        if taints == node["spec"].get("taints", []):
            return

        def change(old: Obj) -> Obj:
            old["spec"]["taints"] = taints
            if not taints:
                del old["spec"]["taints"]
            return old

        self.api.update(NODE, "", name, change, Writer(CONTROLLER))


def _reference(node: Obj) -> Obj:
    return {k: v for k, v in reference(NODE, node).items() if k != "resourceVersion"}


def _holds(condition: Obj) -> bool:
    return bool(condition["type"] == "Ready" and condition["status"] == "True")


def ready(node: Obj) -> str:
    """Return True, False or Unknown; empty if the node never reported."""
    conditions = node.get("status", {}).get("conditions", [])
    return next((str(c["status"]) for c in conditions if c["type"] == "Ready"), "")


def unknown(node: Obj) -> list[Obj]:
    """Return the conditions of a node whose kubelet is silent."""
    created, at, found = node["metadata"]["creationTimestamp"], now(), []
    for condition in node["status"].get("conditions", []):
        reason, message = _STOPPED
        lost = {"status": "Unknown", "lastTransitionTime": at, "reason": reason, "message": message}
        judged = condition["type"] in _JUDGED and condition["status"] != "Unknown"
        found.append(condition | lost if judged else condition)
    reason, message = _NEVER
    for kind in _JUDGED:
        if not any(c["type"] == kind for c in found):
            times = {"lastHeartbeatTime": created, "lastTransitionTime": at}
            found.append({"type": kind, "status": "Unknown", **times, "reason": reason, "message": message})
    return found


def settled(node: Obj, evicting: bool) -> list[Obj]:
    """Return the taints that fit the node's state, with those of others. If no node at all is ready, evict nothing:
    the fault is then more likely in the control plane than in the nodes.
    """
    state = {_TAINTS.get((c["type"], c["status"])) for c in node["status"].get("conditions", [])} - {None}
    wanted = {(key, "NoSchedule") for key in state}
    if node["spec"].get("unschedulable"):
        wanted.add((UNSCHEDULABLE, "NoSchedule"))
    if evicting:
        wanted |= {(key, "NoExecute") for key in state & {NOT_READY, UNREACHABLE}}
    ours = {(key, "NoSchedule") for key in (*_TAINTS.values(), UNSCHEDULABLE)}
    ours |= {(key, "NoExecute") for key in (NOT_READY, UNREACHABLE)}
    old = node["spec"].get("taints", [])
    kept = [t for t in old if (t["key"], t["effect"]) in wanted or (t["key"], t["effect"]) not in ours]
    there = {(t["key"], t["effect"]) for t in kept}
    order = sorted(wanted - there, key=lambda taint: (taint[1] == "NoExecute", taint))
    return kept + [{"key": key, "effect": effect, "timeAdded": now()} for key, effect in order if key]
