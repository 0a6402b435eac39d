"""Nodes that are simulated on this machine, and the faults of each."""

import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from devcluster.errors import bad_request
from devcluster.faults.registry import End, Fault, Switch, number, one_of
from devcluster.gpus import without_health
from devcluster.nodes import NodeFile
from devcluster.resources import Obj

UNREACHABLE, OFF, DELETED, NOT_READY = "unreachable", "off", "deleted", "not-ready"
RUNTIME_DOWN = "runtime-down"
STATES = (UNREACHABLE, OFF, DELETED, NOT_READY, RUNTIME_DOWN)
"""A cut cable (its processes go on), a power loss (they end), one more whose Node goes too, no network plugin, a
container runtime whose socket refuses."""
LEASES = "kube-node-lease"
"""The namespace where kubelets say that they live."""
PRESSURES = ("disk", "memory", "pid")
SILENT, KUBELET_SILENT = "silent", "kubelet_silent"
WITHOUT_GPUS = (
    "library_missing",
    "driver_not_loaded",
    "version_mismatch",
    "device_files_missing",
    "no_permission",
    "nvml_failed",
    "nvml_hangs",
    "gpu_lost",
)
"""What an agent that sees no GPU says of it."""
BESIDE_GPUS = ("uvm_missing", "devices_denied", "xids_unwatched")
AGENT = (SILENT, KUBELET_SILENT, *WITHOUT_GPUS, *BESIDE_GPUS)
MOST_XIDS = 500
"""Errors of GPUs that wait for an agent to tell them."""


@dataclass
class PlayedNode:
    body: Obj
    """What the node file says of it."""
    card: dict[str, str] = field(default_factory=dict)
    """What one of its GPUs announces."""
    gpus: Obj | None = None
    """Its entry of that name in the node file."""
    faults: list[Fault] = field(default_factory=list)
    boot_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """Another one each time that its power comes back."""
    withdrawn: dict[int, int] = field(default_factory=dict)
    """Fault → index of the GPU that its device plugin gives out no more because of it."""
    poisoned: dict[int, int] = field(default_factory=dict)
    """Fault → index of the GPU for whose sake its device plugin gives out none at all."""
    xids: deque[Obj] = field(default_factory=lambda: deque(maxlen=MOST_XIDS))
    """As the driver told them, until the node's agent took them."""

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    def is_in(self, *states: str) -> bool:
        return any(f.spec.get("state") in states for f in self.faults) or (
            UNREACHABLE in states and any(f.spec.get("ready") is False for f in self.faults)
        )

    @property
    def silent(self) -> bool:
        return self.is_in(UNREACHABLE, OFF, DELETED)

    @property
    def stopped(self) -> bool:
        """True while the node is off or deleted: its processes are gone."""
        return self.is_in(OFF, DELETED)

    def presses(self, pressure: str) -> bool:
        return any(f.spec.get("pressure") == pressure for f in self.faults)

    def forget(self, fault: Fault) -> None:
        """End the effects of a fault on the node's device plugin."""
        self.withdrawn.pop(fault.id, None)
        self.poisoned.pop(fault.id, None)

    @property
    def agent(self) -> set[str]:
        """Codes of what its agent misses, or of its silence (`silent`)."""
        return {str(f.spec["agent"]) for f in self.faults if "agent" in f.spec}

    @property
    def unwell_gpus(self) -> set[int]:
        """Indexes of the GPUs that the device plugin no longer offers."""
        count = int(self.gpus["count"]) if self.gpus else 0
        dead = int(sum(f.spec.get("dead_gpus", 0) for f in self.faults))
        return set(self.withdrawn.values()) | set(range(max(count - dead, 0), count))

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations of the node as its plugins write them."""
        return without_health(self.body["metadata"].get("annotations") or {}, self.unwell_gpus)

    @property
    def allocatable(self) -> dict[str, str]:
        """Capacity of the node without its failed GPUs."""
        unwell = len(self.unwell_gpus)
        found = dict(self.body["status"]["capacity"])
        for resource, amount in self.card.items():
            found[resource] = str(max(int(found[resource]) - unwell * int(amount), 0))
        return found


class Fleet:
    def __init__(self, file: NodeFile):
        bodies = {body["metadata"]["name"]: body for body in file.nodes}
        self._nodes = {
            name: PlayedNode(body, file.cards.get(name, {}), file.gpus.get(name))
            for name, body in bodies.items()
        }
        self._listeners: list[Callable[[PlayedNode], None]] = []
        members = frozenset({"ready", "state", "pressure", "dead_gpus", "agent"})
        self.switch = Switch(("node",), members, self._begin)

    def __iter__(self) -> Iterator[PlayedNode]:
        return iter(self._nodes.values())

    def get(self, name: str) -> PlayedNode | None:
        return self._nodes.get(name)

    def speaks(self, name: str) -> bool:
        """Return True if the node has a kubelet whose reports arrive."""
        node = self._nodes.get(name)
        return node is not None and not node.silent

    def is_in(self, name: str, state: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and node.is_in(state)

    def presses(self, name: str, pressure: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and node.presses(pressure)

    def listen(self, listener: Callable[[PlayedNode], None]) -> None:
        """Call `listener` whenever a node's faults change."""
        self._listeners.append(listener)

    def _begin(self, fault: Fault) -> End | None:
        spec = fault.spec
        node = self.named(spec["node"])
        if spec.get("ready") is True:
            self._recover(node)
            return None
        if set(spec) == {"node"}:
            raise bad_request("say what ails the node: state, pressure, dead_gpus or agent")
        if "state" in spec:
            one_of(spec, "state", STATES)
        if "pressure" in spec:
            one_of(spec, "pressure", PRESSURES)
        if "agent" in spec:
            one_of(spec, "agent", AGENT)
        number(spec, "dead_gpus")
        return self.ail(node, fault)

    def named(self, name: str) -> PlayedNode:
        node = self._nodes.get(name)
        if node is None:
            raise bad_request(f'no node "{name}" is played; there are: {", ".join(self._nodes)}')
        return node

    def ail(self, node: PlayedNode, fault: Fault) -> End:
        """Add a fault to the node. Return the function that ends it; a recovery of the node ends it too."""
        node.faults.append(fault)
        self.changed(node)
        return lambda: self._end(node, [fault])

    def _recover(self, node: PlayedNode) -> None:
        for fault in node.faults:
            fault.released.set()
        self._end(node, list(node.faults))

    def _end(self, node: PlayedNode, ended: list[Fault]) -> None:
        was_stopped = node.stopped
        node.faults = [f for f in node.faults if f not in ended]
        for fault in ended:
            node.forget(fault)
        if was_stopped and not node.stopped:
            node.boot_id = str(uuid.uuid4())
        self.changed(node)

    def changed(self, node: PlayedNode) -> None:
        """Notify the listeners that a node's faults changed."""
        for listener in self._listeners:
            listener(node)
