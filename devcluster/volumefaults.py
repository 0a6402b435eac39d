"""Storage that is slow, stuck or refuses, step by step.

`{"volume": "attach", "match": {…}, "seconds": 5}` lets a step take so long; with `"error": "rpc error: …"` it fails
with these words for as long as the fault is on; with neither it is stuck, and says that its time ran out. Steps are
`provision`, `attach`, `detach`, `mount`, `expand`, `snapshot`; and `full`: what the volume has left is taken (process
pods). `match` names any of `namespace`, `claim`, `class`, `node`.
"""

import time
from collections.abc import Callable

from devcluster.errors import bad_request
from devcluster.faults import End, Fault, Switch, number, one_of
from devcluster.resources import Obj

STEPS = ("provision", "attach", "detach", "mount", "expand", "snapshot", "full")
FACTS = ("namespace", "claim", "class", "node")
STUCK = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
RETRY_SECONDS = 0.5
"""How soon a step that a fault holds back is tried again."""


class HeldBack(Exception):
    """The step is not done yet; `error` is what it says, nothing while it only takes its time."""

    def __init__(self, error: str = ""):
        super().__init__(error)
        self.error = error


class VolumeFaults:
    def __init__(self, changed: Callable[[], None] = lambda: None):
        self._faults: dict[int, Fault] = {}
        self._begun: dict[tuple[int, str], float] = {}
        self.changed = changed
        """Called when a fault begins or ends."""

    @property
    def switch(self) -> Switch:
        return Switch(("volume",), frozenset({"match", "seconds", "error"}), self._begin)

    def _begin(self, fault: Fault) -> End:
        one_of(fault.spec, "volume", STEPS)
        number(fault.spec, "seconds")
        if unknown := set(fault.spec.get("match") or {}) - set(FACTS):
            raise bad_request(f"unknown match: {', '.join(sorted(unknown))}; it knows {', '.join(FACTS)}")
        self._faults[fault.id] = fault
        self.changed()

        def end() -> None:
            del self._faults[fault.id]
            self._begun = {key: at for key, at in self._begun.items() if key[0] != fault.id}
            self.changed()

        return end

    def matches(self, step: str, claim: Obj, node: str = "") -> Fault | None:
        """The fault that is on for this step of the claim's volume."""
        facts = {
            "namespace": claim["metadata"]["namespace"],
            "claim": claim["metadata"]["name"],
            "class": claim["spec"].get("storageClassName", ""),
            "node": node,
        }
        for fault in self._faults.values():
            wanted = fault.spec.get("match") or {}
            if fault.spec["volume"] == step and all(facts[k] == v for k, v in wanted.items()):
                return fault
        return None

    def bear(self, step: str, claim: Obj, node: str = "") -> None:
        """HeldBack while a fault keeps this step from being done."""
        fault = self.matches(step, claim, node)
        if fault is None:
            return
        key = fault.id, claim["metadata"]["uid"] + node
        begun = self._begun.setdefault(key, time.monotonic())
        fault.hits += 1
        if "seconds" not in fault.spec:
            raise HeldBack(fault.spec.get("error", STUCK))
        if time.monotonic() < begun + fault.spec["seconds"]:
            raise HeldBack
        del self._begun[key]
