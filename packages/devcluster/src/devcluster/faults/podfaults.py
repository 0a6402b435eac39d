"""Faults of a pod's start: its sandbox or its containers are refused, in the words of the node's components.

`{"pod": "sandbox", "error": "no-address", "match": {…}}`, `{"pod": "container", "error": "no-uvm"}`: by a word for a
common error or a text of your own. Errors of NVIDIA's toolkit affect only containers that request a GPU. `match` names
any of `namespace`, `name` (a pattern with `*`) and `node`.
"""

import secrets

from devcluster.errors import bad_request
from devcluster.faults.registry import End, Fault, Switch, check_match, one_of
from devcluster.fleet import RUNTIME_DOWN, Fleet
from devcluster.resources import Obj

SANDBOX, CONTAINER = "sandbox", "container"
FACTS = ("namespace", "name", "node")
SOCKET = (
    'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix'
    ' /run/containerd/containerd.sock: connect: connection refused"'
)
_NETWORK = 'rpc error: code = Unknown desc = failed to setup network for sandbox "{id}":'
_CALICO = ' plugin type="calico" failed (add): '
_SANDBOXES = {
    "no-address": _NETWORK
    + _CALICO
    + "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses;"
    " No IPs available in pools: [10.244.0.0/16]",
    "network-down": _NETWORK
    + _CALICO
    + "stat /var/lib/calico/nodename: no such file or directory: check that the"
    " calico/node container is running and has mounted /var/lib/calico/",
    "runtime-down": SOCKET,
    "no-runtime-class": "rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for"
    ' "nvidia" is configured',
}
_STARTING = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed:"
    " unable to start container process: error during container init: error running prestart hook #0: exit status 1,"
    " stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: "
)
_NVIDIA = {
    "no-library": _STARTING
    + "initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object"
    " file: no such file or directory: unknown",
    "no-nvml": "Failed to initialize NVML: could not load NVML library",
    "no-driver": _STARTING + "initialization error: nvml error: driver not loaded: unknown",
    "driver-mismatch": _STARTING
    + "initialization error: nvml error: driver/library version mismatch: unknown",
    "old-driver": _STARTING
    + "requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a"
    " newer version, or use an earlier cuda container: unknown",
    "no-uvm": _STARTING + "mount error: stat failed: /dev/nvidia-uvm: no such file or directory: unknown",
    "devices-allow": _STARTING
    + "mount error: open failed: /sys/fs/cgroup/devices/system.slice/containerd.service/"
    "kubepods-besteffort.slice:cri-containerd:{id}/devices.allow: no such file or directory: unknown",
}
WORDS = {SANDBOX: _SANDBOXES, CONTAINER: _NVIDIA}


class PodFaults:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._on: list[Fault] = []
        self.switch = Switch(("pod",), frozenset({"error", "match"}), self._begin)

    def _begin(self, fault: Fault) -> End:
        step = one_of(fault.spec, "pod", tuple(WORDS))
        if not isinstance(fault.spec.get("error"), str) or not fault.spec["error"]:
            raise bad_request(f"error is one of {', '.join(WORDS[step])} or a text")
        check_match(fault.spec, FACTS)
        self._on.append(fault)
        return lambda: self._on.remove(fault)

    def of_sandbox(self, pod: Obj) -> str:
        """Return why the pod's sandbox cannot be made; empty if it can."""
        down = self._fleet.is_in(pod["spec"]["nodeName"], RUNTIME_DOWN)
        if error := "runtime-down" if down else self._met(SANDBOX, pod):
            return "Failed to create pod sandbox: " + _SANDBOXES.get(error, error).replace("{id}", _an_id())
        return ""

    def of_container(self, pod: Obj, container: Obj) -> str:
        error = self._met(CONTAINER, pod, container)
        return _NVIDIA.get(error, error).replace("{id}", _an_id())

    def _met(self, step: str, pod: Obj, container: Obj | None = None) -> str:
        meta = pod["metadata"]
        facts = {"namespace": meta["namespace"], "name": meta["name"], "node": pod["spec"]["nodeName"]}
        for fault in self._on:
            error = str(fault.spec["error"])
            spared = container is not None and error in _NVIDIA and not _asks_for_gpu(container)
            if fault.spec["pod"] == step and not spared and fault.matches(facts):
                fault.hits += 1
                return error
        return ""


def _asks_for_gpu(container: Obj) -> bool:
    limits = (container.get("resources") or {}).get("limits") or {}
    return any(name.startswith(("nvidia.com/", "tencent.com/vcuda")) for name in limits)


def _an_id() -> str:
    return secrets.token_hex(32)
