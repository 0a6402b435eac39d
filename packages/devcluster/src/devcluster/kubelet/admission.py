"""Admission of a pod by the kubelet of its node, whoever bound the pod there."""

from collections import Counter
from dataclasses import dataclass

from devcluster.fleet import PlayedNode
from devcluster.gpuplay.devices import Devices
from devcluster.resources import Obj
from devcluster.scheduling.fitting import selector_fits
from devcluster.values.qos import requests
from devcluster.values.quantity import milli

EVICTED = "Evicted"
_COUNTED = ("pods", "cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True)
class Rejected:
    reason: str
    message: str


class Ledger:
    """Requests of the pods that each node has admitted, and their GPUs one by one."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._used: dict[str, Counter[str]] = {}
        self._entries: dict[str, tuple[str, dict[str, int]]] = {}

    def enter(self, pod: Obj) -> None:
        node, amounts = str(pod["spec"]["nodeName"]), requests(pod["spec"])
        self._entries[pod["metadata"]["uid"]] = node, amounts
        self._used.setdefault(node, Counter()).update(amounts)
        self._devices.give(pod)

    def leave(self, uid: str) -> None:
        if entry := self._entries.pop(uid, None):
            node, amounts = entry
            self._used[node].subtract(amounts)
            self._devices.take_back(uid)

    def used(self, node: str) -> Counter[str]:
        return self._used.get(node, Counter())


def rejection(pod: Obj, node: PlayedNode, found: Obj, used: Counter[str]) -> Rejected | None:
    """Return why the node rejects the pod. `found` is the Node, `used` its other pods' requests in thousandths."""
    asked = requests(pod["spec"])
    return (
        _under_pressure(pod, node)
        or _without_device(asked, node, used)
        or _without_room(asked, node, used)
        or _elsewhere(pod, found)
    )


def _under_pressure(pod: Obj, node: PlayedNode) -> Rejected | None:
    if node.presses("disk"):
        return Rejected(EVICTED, "The node had condition: [DiskPressure]. ")
    if node.presses("memory") and pod["status"].get("qosClass") == "BestEffort":
        return Rejected(EVICTED, "The node had condition: [MemoryPressure]. ")
    return None


def _without_device(asked: dict[str, int], node: PlayedNode, used: Counter[str]) -> Rejected | None:
    if node.poisoned and any(asked.get(resource) for resource in node.card):
        index = min(node.poisoned.values())
        why = "device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = Unable to"
        why += f" retrieve list of available devices: error creating nvml.Device {index}: nvml: GPU is lost"
        return Rejected("UnexpectedAdmissionError", f"Allocate failed due to {why}, which is unexpected")
    for resource, healthy in node.allocatable.items():
        needed, left = asked.get(resource, 0) // 1000, int(milli(healthy) - used[resource]) // 1000
        if "/" not in resource or needed <= left:
            continue
        why = f"requested number of devices unavailable for {resource}. Requested: {needed}, Available: {max(left, 0)}"
        if milli(healthy) == 0:
            why = f"no healthy devices present; cannot allocate unhealthy devices {resource}"
        return Rejected("UnexpectedAdmissionError", f"Allocate failed due to {why}, which is unexpected")
    return None


def _without_room(asked: dict[str, int], node: PlayedNode, used: Counter[str]) -> Rejected | None:
    for resource in _COUNTED:
        amounts = asked.get(resource, 0), used[resource], milli(node.allocatable.get(resource, "0"))
        needed, held, capacity = (n if resource == "cpu" else n // 1000 for n in amounts)
        if needed and needed + held > capacity:
            told = f"requested: {needed}, used: {held}, capacity: {capacity}"
            return Rejected(f"OutOf{resource}", f"Node didn't have enough resource: {resource}, {told}")
    return None


def _elsewhere(pod: Obj, found: Obj) -> Rejected | None:
    if selector_fits(pod["spec"], found):
        return None
    why = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    return Rejected("NodeAffinity", why)
