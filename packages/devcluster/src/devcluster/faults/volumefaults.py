"""Faults of storage: a step that is slow, stuck or refused.

`{"volume": "attach", "match": {…}, "seconds": 5}` delays a step by so long; with an `error` it fails while the fault
is active, by a word for a driver's message (`WORDS`) or a text of your own; with neither it is stuck, and reports a
timeout. Steps are `provision`, `attach`, `detach`, `mount`, `expand`, `snapshot`; and `full`: the volume has no space
left (process pods). `held`: an agent of the node outside of Kubernetes keeps the volume mounted. The node does not let
go of it, and a mount that writes finds no file system and makes one: all files are lost, and `hits` counts
that. `match` names any of `namespace`, `claim`, `class`, `node`.
"""

import time
from collections.abc import Callable

from devcluster.faults.registry import End, Fault, Switch, check_match, number, one_of
from devcluster.resources import Obj

STEPS = ("provision", "attach", "detach", "mount", "expand", "snapshot", "full", "held")
FACTS = ("namespace", "claim", "class", "node")
STUCK = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
RETRY_SECONDS = 0.5
"""How soon a step that a fault holds back is tried again."""
MULTI_ATTACH = "Multi-Attach error"
_MOUNTING = (
    "rpc error: code = Internal desc = mount failed: exit status 32\nMounting command: mount\nMounting arguments:"
    " -t ext4 -o _netdev,discard,defaults /dev/rbd0 {path}\nOutput: mount: {path}: "
)
WORDS = {
    "provision": {
        "full": "rpc error: code = ResourceExhausted desc = no drive found for requested topology",
        "busy": "rpc error: code = Aborted desc = an operation with the given Volume ID {volume} already exists",
        "not-configured": "rpc error: code = Internal desc = controller not configured",
    },
    "attach": {
        "elsewhere": MULTI_ATTACH
        + ' for volume "{volume}" Volume is already exclusively attached to one node and'
        " can't be attached to another",
        "silent": "timed out waiting for external-attacher of {driver} CSI driver to attach volume {volume}",
        "unwell": "rpc error: code = Aborted desc = volume {volume} is not ready for workloads",
        "no-driver": "CSINode {node} does not contain driver {driver}",
    },
    "mount": {
        "superblock": _MOUNTING + "can't read superblock on /dev/rbd0.\n",
        "wrong-filesystem": _MOUNTING
        + "wrong fs type, bad option, bad superblock on /dev/rbd0, missing codepage or"
        " helper program, or other error.\n",
        "timeout": STUCK,
        "busy": "rpc error: code = Aborted desc = an operation with the given Volume ID {volume} already exists",
        "mds": "rpc error: code = Internal desc = an error (exit status 32) occurred while running mount args:"
        " [-t ceph 10.0.0.11:6789:/volumes/csi/{volume} {path}] stderr: mount error: no mds (Metadata Server) is up."
        " The cluster might be laggy, or you may not be authorized\n",
        "rbd": "rpc error: code = Internal desc = rbd: map failed with error an error (exit status 22) occurred while"
        " running rbd args: [map kubernetes/{volume}], rbd error output: rbd: mapping succeeded but /dev/rbd5 is not"
        " accessible, is host /dev mounted?\nrbd: map failed: (22) Invalid argument\n",
        "denied": "rpc error: code = Internal desc = mount failed: exit status 32\nMounting command: mount\nMounting"
        " arguments: -t nfs 10.0.0.12:/export {path}\nOutput: mount.nfs: access denied by server while mounting"
        " 10.0.0.12:/export\n",
        "no-driver": "driver name {driver} not found in the list of registered CSI drivers",
    },
    "expand": {"full": "rpc error: code = Internal desc = not enough space"},
}
"""What drivers say, by step."""


class HeldBack(Exception):
    """Step of storage that is not done yet; `error` is its message, empty while the step is only slow."""

    def __init__(self, error: str = ""):
        super().__init__(error)
        self.error = error


class VolumeFaults:
    def __init__(self, changed: Callable[[], None] = lambda: None):
        self._faults: dict[int, Fault] = {}
        self._begun: dict[tuple[int, str], float] = {}
        self.changed = changed
        """Called when a fault begins or ends."""
        self.switch = Switch(("volume",), frozenset({"match", "seconds", "error"}), self._begin)

    def _begin(self, fault: Fault) -> End:
        one_of(fault.spec, "volume", STEPS)
        number(fault.spec, "seconds")
        check_match(fault.spec, FACTS)
        self._faults[fault.id] = fault
        self.changed()

        def end() -> None:
            del self._faults[fault.id]
            self._begun = {key: at for key, at in self._begun.items() if key[0] != fault.id}
            self.changed()

        return end

    def matches(self, step: str, claim: Obj, node: str = "") -> Fault | None:
        """Return the active fault of this step of the claim's volume."""
        facts = {
            "namespace": claim["metadata"]["namespace"],
            "claim": claim["metadata"]["name"],
            "class": claim["spec"].get("storageClassName", ""),
            "node": node,
        }
        on = self._faults.values()
        return next((f for f in on if f.spec["volume"] == step and f.matches(facts)), None)

    def bear(self, step: str, claim: Obj, node: str = "") -> None:
        """Raise HeldBack while a fault keeps this step from being done."""
        fault = self.matches(step, claim, node)
        if fault is None:
            return
        key = fault.id, claim["metadata"]["uid"] + node
        begun = self._begun.setdefault(key, time.monotonic())
        fault.hits += 1
        if "seconds" not in fault.spec:
            raise HeldBack(_words(step, fault.spec.get("error", STUCK), claim, node))
        if time.monotonic() < begun + fault.spec["seconds"]:
            raise HeldBack
        del self._begun[key]


def _words(step: str, error: str, claim: Obj, node: str) -> str:
    text = WORDS.get(step, {}).get(error)
    if text is None:
        return error
    volume = claim["spec"].get("volumeName") or f"pvc-{claim['metadata']['uid']}"
    driver = (claim["metadata"].get("annotations") or {}).get("volume.kubernetes.io/storage-provisioner", "")
    path = f"/var/lib/kubelet/plugins/kubernetes.io/csi/{driver}/{volume}/globalmount"
    return text.format(volume=volume, driver=driver, node=node, path=path)
