"""Faults of a card: `{"gpu": "a100-1/0", "xid": 79}`, by its node and index, or by its UUID.

An Xid is reported once. Other problems last until the fault ends. At an Xid that NVIDIA's device plugin considers
critical (k8s-device-plugin 0.20), it also withdraws the card until the plugin restarts, which the end of the fault
stands for. The plugin checks nothing else; `"withdrawn": true` or `false` overrides that. `"poisons": true` simulates
another known fault of the plugin: because of one card it offers none of the node's. After a reboot a node has lost
all these faults but rows that cannot be remapped.
"""

import time

from devcluster.errors import bad_request
from devcluster.faults.registry import End, Fault, Switch, number, one_of
from devcluster.fleet import Fleet, PlayedNode
from devcluster.gpus import card_id
from devcluster.resources import Obj

STATES = ("lost", "reset_required", "failing", "gone")
ROWS = ("pending", "failed")
SLOWED_BY = ("power_cap", "hardware", "sync_boost", "heat", "hardware_heat", "power_brake")
LOST_XID = 79
IGNORED_XIDS = frozenset({13, 31, 43, 45, 68, 109})
"""An application's own errors: the device plugin does not look at them."""
_KINDS = ("xid", "state", "ecc_uncorrected", "row_remap", "slowed_by", "hot")


class GpuFaults:
    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self._boots: dict[str, str] = {node.name: node.boot_id for node in fleet}
        self.switch = Switch(("gpu",), frozenset({*_KINDS, "withdrawn", "poisons"}), self._begin)
        fleet.listen(self._rebooted)

    def _begin(self, fault: Fault) -> End:
        node, index = self._named(str(fault.spec["gpu"]))
        _check(fault.spec)
        if _withdraws(fault.spec):
            node.withdrawn[fault.id] = index
        if fault.spec.get("poisons"):
            node.poisoned[fault.id] = index
        for xid in _xids(fault.spec):
            node.xids.append({"xid": xid, "at": time.time(), "uuid": card_id(node.name, index)})
        fault.spec = {**fault.spec, "gpu": f"{node.name}/{index}"}
        return self._fleet.ail(node, fault)

    def _named(self, name: str) -> tuple[PlayedNode, int]:
        for node in self._fleet:
            for index in range(int(node.gpus["count"]) if node.gpus else 0):
                if name in (f"{node.name}/{index}", card_id(node.name, index)):
                    return node, index
        raise bad_request(f'no GPU "{name}" is played; it is NODE/INDEX or a UUID')

    def _rebooted(self, node: PlayedNode) -> None:
        if self._boots.get(node.name) == node.boot_id:
            return
        self._boots[node.name] = node.boot_id
        node.xids.clear()
        for fault in [f for f in node.faults if "gpu" in f.spec and f.spec.get("row_remap") != "failed"]:
            node.faults.remove(fault)
            node.forget(fault)
            fault.released.set()


def of_card(node: PlayedNode, index: int) -> list[Obj]:
    """Return the specs of the card's faults."""
    return [f.spec for f in node.faults if f.spec.get("gpu") == f"{node.name}/{index}"]


def _check(spec: Obj) -> None:
    if len([kind for kind in _KINDS if kind in spec]) != 1:
        raise bad_request(f"say what ails the GPU, one of: {', '.join(_KINDS)}")
    number(spec, "xid")
    number(spec, "ecc_uncorrected")
    for member, values in (("state", STATES), ("row_remap", ROWS), ("slowed_by", SLOWED_BY)):
        if member in spec:
            one_of(spec, member, values)


def _xids(spec: Obj) -> list[int]:
    """Return the Xids of a fault; a card that falls off the bus reports an Xid too."""
    if "xid" in spec:
        return [int(spec["xid"])]
    return [LOST_XID] if spec.get("state") == "lost" else []


def _withdraws(spec: Obj) -> bool:
    told = any(xid not in IGNORED_XIDS for xid in _xids(spec))
    return bool(spec.get("withdrawn", told))
