"""Status of a node as its kubelet writes it: conditions, addresses, node info and resources. Pure."""

import platform
import uuid

from devcluster.fleet import NOT_READY, RUNTIME_DOWN, PlayedNode
from devcluster.resources import Obj

_PRESSURES = {
    "MemoryPressure": ("memory", "Sufficient", "Insufficient", "Memory", "memory available"),
    "PIDPressure": ("pid", "Sufficient", "Insufficient", "PID", "PID available"),
}
_READY = ("True", "KubeletReady", "kubelet is posting ready status")
_BROKEN = (
    "False",
    "KubeletNotReady",
    (
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
        " message:Network plugin returns error: cni plugin not initialized"
    ),
)
_WITHOUT_RUNTIME = (
    "False",
    "KubeletNotReady",
    "[container runtime is down, PLEG is not healthy: pleg was last seen active 3m7.128543s ago; threshold is 3m0s]",
)
LONGEST_IMAGES = 50
"""Images that a status names (nodeStatusMaxImages)."""


def conditions(node: PlayedNode, old: list[Obj], at: str) -> list[Obj]:
    """Return conditions with the time of this report; keep the transition's time while the status is the same."""
    known = {c["type"]: c for c in old}
    found = []
    for kind, (status, reason, message) in _wanted(node).items():
        before = known.get(kind, {})
        since = before.get("lastTransitionTime") if before.get("status") == status else at
        times = {"lastHeartbeatTime": at, "lastTransitionTime": since or at}
        found.append({"type": kind, "status": status, **times, "reason": reason, "message": message})
    return found


def _wanted(node: PlayedNode) -> dict[str, tuple[str, str, str]]:
    def pressure(kind: str) -> tuple[str, str, str]:
        name, enough, lacking, what, words = _PRESSURES[kind]
        held = node.presses(name)
        word = lacking if held else enough
        return str(held), f"KubeletHas{word}{what}", f"kubelet has {word.lower()} {words}"

    full = node.presses("disk")
    disk = ("KubeletHasDiskPressure", "kubelet has disk pressure")
    free = ("KubeletHasNoDiskPressure", "kubelet has no disk pressure")
    return {
        "MemoryPressure": pressure("MemoryPressure"),
        "DiskPressure": (str(full), *(disk if full else free)),
        "PIDPressure": pressure("PIDPressure"),
        "Ready": _readiness(node),
    }


def _readiness(node: PlayedNode) -> tuple[str, str, str]:
    if node.is_in(NOT_READY):
        return _BROKEN
    return _WITHOUT_RUNTIME if node.is_in(RUNTIME_DOWN) else _READY


def transition_event(condition: Obj) -> str:
    """Return the reason of the event that reports the condition's change."""
    if condition["type"] == "Ready":
        return "NodeReady" if condition["status"] == "True" else "NodeNotReady"
    return str(condition["reason"]).replace("Kubelet", "Node", 1)


def status(node: PlayedNode, old: Obj, images: list[Obj], at: str) -> Obj:
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": node.name}]
    return {
        **old,
        "capacity": node.body["status"]["capacity"],
        "allocatable": node.allocatable,
        "conditions": conditions(node, old.get("conditions", []), at),
        "addresses": addresses,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _info(node),
        **({"images": images[:LONGEST_IMAGES]} if images else {}),
    }


def without_heartbeat(found: Obj) -> Obj:
    beats = [{k: v for k, v in c.items() if k != "lastHeartbeatTime"} for c in found.get("conditions", [])]
    return found | {"conditions": beats}


def _info(node: PlayedNode) -> Obj:
    machine = uuid.uuid5(uuid.NAMESPACE_DNS, node.name)
    return {
        "machineID": machine.hex,
        "systemUUID": str(machine),
        "bootID": node.boot_id,
        "kernelVersion": platform.release(),
        "osImage": "devcluster",
        "containerRuntimeVersion": "devcluster://1",
        "kubeletVersion": "v1.36.2",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
        **node.body["status"]["nodeInfo"],
    }
