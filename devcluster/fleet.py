"""The nodes that are played on this machine, and what ails each of them: the faults of nodes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from devcluster.errors import bad_request
from devcluster.faults import Fault, Switch, number, one_of
from devcluster.gpus import without_health
from devcluster.nodes import NodeFile
from devcluster.resources import Obj

UNREACHABLE, OFF, DELETED, NOT_READY = "unreachable", "off", "deleted", "not-ready"
STATES = (UNREACHABLE, OFF, DELETED, NOT_READY)
"""A cut cable (its processes go on), a power loss (they end), one more whose Node goes too, a broken runtime."""
LEASES = "kube-node-lease"
"""The namespace where kubelets say that they live."""
PRESSURES = ("disk", "memory", "pid")


@dataclass
class PlayedNode:
    body: Obj
    """What the node file says of it."""
    card: dict[str, str] = field(default_factory=dict)
    """What one of its GPUs announces."""
    faults: list[Fault] = field(default_factory=list)

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
        """Its processes are gone."""
        return self.is_in(OFF, DELETED)

    def presses(self, pressure: str) -> bool:
        return any(f.spec.get("pressure") == pressure for f in self.faults)

    @property
    def dead_gpus(self) -> int:
        return int(sum(f.spec.get("dead_gpus", 0) for f in self.faults))

    @property
    def annotations(self) -> dict[str, str]:
        """As its plugins write them."""
        return without_health(self.body["metadata"].get("annotations") or {}, self.dead_gpus)

    @property
    def allocatable(self) -> dict[str, str]:
        """Its capacity without the GPUs that died."""
        dead = self.dead_gpus
        found = dict(self.body["status"]["capacity"])
        for resource, amount in self.card.items():
            found[resource] = str(max(int(found[resource]) - dead * int(amount), 0))
        return found


class Fleet:
    def __init__(self, file: NodeFile):
        bodies = {body["metadata"]["name"]: body for body in file.nodes}
        self._nodes = {name: PlayedNode(body, file.cards.get(name, {})) for name, body in bodies.items()}
        self._listeners: list[Callable[[PlayedNode], None]] = []
        members = frozenset({"ready", "state", "pressure", "dead_gpus"})
        self.switches = (Switch(("node",), members, self._begin),)

    def __iter__(self) -> Iterator[PlayedNode]:
        return iter(self._nodes.values())

    def get(self, name: str) -> PlayedNode | None:
        return self._nodes.get(name)

    def speaks(self, name: str) -> bool:
        """Whether a kubelet is there and heard."""
        node = self._nodes.get(name)
        return node is not None and not node.silent

    def presses(self, name: str, pressure: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and node.presses(pressure)

    def listen(self, listener: Callable[[PlayedNode], None]) -> None:
        """Call it whenever what ails a node changes."""
        self._listeners.append(listener)

    def _begin(self, fault: Fault) -> Callable[[], object] | None:
        spec = fault.spec
        node = self._nodes.get(spec["node"])
        if node is None:
            raise bad_request(f'no node "{spec["node"]}" is played; there are: {", ".join(self._nodes)}')
        if spec.get("ready") is True:
            self._recover(node)
            return None
        if set(spec) == {"node"}:
            raise bad_request("say what ails the node: state, pressure or dead_gpus")
        if "state" in spec:
            one_of(spec, "state", STATES)
        if "pressure" in spec:
            one_of(spec, "pressure", PRESSURES)
        number(spec, "dead_gpus")
        node.faults.append(fault)
        self._changed(node)
        return lambda: self._end(node, fault)

    def _recover(self, node: PlayedNode) -> None:
        for fault in node.faults:
            fault.released.set()
        node.faults.clear()
        self._changed(node)

    def _end(self, node: PlayedNode, fault: Fault) -> None:
        if fault in node.faults:
            node.faults.remove(fault)
            self._changed(node)

    def _changed(self, node: PlayedNode) -> None:
        for listener in self._listeners:
            listener(node)
