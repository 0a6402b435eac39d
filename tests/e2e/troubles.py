"""Troubles that can happen to a person's workspace, switched on in the cluster: their messages, and how they end.

Faults of a start are on before the launch. Faults of a running workspace hit alice's laboratory. The last ones end
what runs on a node. Rows stand in the order in which they are tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.scene import FAR, Body, Messages, Moment, Scene
from tests.e2e.stack import until
from tests.workspaces.ways_in.notebook import Kernel

Happening = tuple[Body, Moment]
Happens = Callable[[Scene], AbstractContextManager[Happening]]


class End(Enum):
    """State of the workspace when the fault is over."""

    COMES_UP = "it starts by itself"
    RUNS_ON = "it ran on, and says nothing of it any more"
    STARTS_AGAIN = "it had ended, and starts when it is started"
    NONE = "it is deleted before: with the image once pulled, the next row could not happen"


@dataclass(frozen=True)
class Trouble:
    """A trouble. `happens` causes it until its context ends, and yields the workspace and the moment of its beginning.
    `admin`: words on the admin's page while it lasts."""

    code: str
    words: str
    happens: Happens
    end: End = End.COMES_UP
    admin: str = ""


def at_start(body: Body | None = None, **spec: Any) -> Happens:
    """Switch the fault on before a launch."""

    @contextmanager
    def happens(scene: Scene) -> Iterator[Happening]:
        with scene.fault(**spec):
            began = Moment()
            yield scene.launch("newcomer", **(body or {})), began

    return happens


def to_the_lab(**spec: Any) -> Happens:
    """Hit the GPU or the node of alice's laboratory: `{gpu}` and `{node}` stand for them."""

    @contextmanager
    def happens(scene: Scene) -> Iterator[Happening]:
        lab = scene.lab()
        with scene.fault(**there(scene, lab, spec)) as began:
            yield lab, began

    return happens


def to_a_newcomer(**spec: Any) -> Happens:
    """Hit the GPU or the node of a new workspace, which does not survive, or reports the fault only once."""

    @contextmanager
    def happens(scene: Scene) -> Iterator[Happening]:
        workspace = scene.wait(scene.launch("unlucky"), "ready")
        with scene.fault(**there(scene, workspace, spec)) as began:
            yield workspace, began

    return happens


def there(scene: Scene, workspace: Body, spec: Body) -> Body:
    """Return the fault with the workspace's GPU and node filled in."""
    places = {"node": workspace["node"]}
    if "gpu" in spec:
        places["gpu"] = scene.gpu(workspace)
    return {key: value.format(**places) if isinstance(value, str) else value for key, value in spec.items()}


@contextmanager
def gpu_that_an_admin_trusts_again(scene: Scene) -> Iterator[Happening]:
    """Cause an Xid, then have the admin trust the GPU: an Xid happens once, so the end of its fault repairs nothing."""
    lab = scene.lab()
    uuid = scene.gpu(lab)
    with scene.fault(gpu=uuid, xid=79) as began:
        yield lab, began
    scene.trust(uuid)


@contextmanager
def out_of_memory(scene: Scene) -> Iterator[Happening]:
    workspace = scene.wait(scene.launch("greedy"), "ready")
    with Kernel(Jupyter.of(scene, workspace)) as kernel:
        began = Moment()
        kernel.start("held = b'x' * 2 * 2**30")
        yield workspace, began


@dataclass(frozen=True)
class Jupyter:
    """A workspace's Jupyter, as a script reaches it."""

    address: str
    port: int
    host: str
    token: str

    @classmethod
    def of(cls, scene: Scene, workspace: Body) -> Jupyter:
        _status, given = scene.api("POST", f"workspaces/{workspace['id']}/jupyter/")
        at = urlsplit(given["url"])
        return cls("127.0.0.1", at.port or 80, at.netloc, given["token"])


@contextmanager
def no_node_for_its_disk(scene: Scene) -> Iterator[Happening]:
    """Cordon the node of a workspace's disk. Other nodes have room, but cannot have that disk."""
    workspace = scene.wait(scene.launch("tied", disk_mib=64), "ready")
    node = f"/api/v1/nodes/{workspace['node']}"
    scene.api("POST", f"workspaces/{workspace['id']}/stop/")
    scene.wait(workspace, "stopped")
    began = Moment()
    scene.kube.call("PATCH", node, {"spec": {"unschedulable": True}}, "merge")
    scene.start(workspace)
    yield workspace, began
    scene.kube.call("PATCH", node, {"spec": {"unschedulable": None}}, "merge")


@contextmanager
def temporary_files(scene: Scene) -> Iterator[Happening]:
    workspace = scene.wait(scene.launch("hoarder"), "ready")
    with Kernel(Jupyter.of(scene, workspace)) as kernel:
        began = Moment()
        kernel.start(
            "import os; os.posix_fallocate(os.open('/tmp/x', os.O_CREAT | os.O_RDWR), 0, 11 * 2**30)"
        )
        yield workspace, began


@contextmanager
def namespace_full(scene: Scene) -> Iterator[Happening]:
    """Create a ResourceQuota in the tenant's namespace that is not Berth's."""
    lab = scene.lab()
    quotas = "/api/v1/namespaces/berth-demo/resourcequotas"
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "foreign"}}
    scene.kube.call("POST", quotas, body | {"spec": {"hard": {"pods": "1"}}})
    try:
        began = Moment()
        yield scene.launch("newcomer"), began
    finally:
        scene.kube.call("DELETE", f"{quotas}/foreign")
    assert scene.now(lab)["phase"] == "ready"


@contextmanager
def gpu_memory_taken(scene: Scene) -> Iterator[Happening]:
    """Take more than half of the only GPU that people share by memory."""
    pools = scene.api("GET", "pools/")[1]["results"]
    body = {"pool": next(pool["slug"] for pool in pools if pool["sharing"] == "hami")}
    body |= {"gpus": 0.2, "gpu_memory_mib": 9 * 1024}
    first = scene.wait(scene.launch("larger", **body), "ready")
    began = Moment()
    yield scene.launch("newcomer", **body), began
    scene.api("POST", f"workspaces/{first['id']}/stop/")


@contextmanager
def addresses_used_up(scene: Scene) -> Iterator[Happening]:
    """Limit the cluster to two addresses, which carol and alice have."""
    scene.lab()
    with scene.fault(addresses=2):
        began = Moment()
        yield scene.launch("newcomer"), began


def first_message(told: Messages, trouble: Trouble, since: Moment) -> tuple[float, str]:
    found = until(f"“{trouble.code}” is sent", lambda: told.first(trouble.code, since), 120)
    assert found is not None
    return found


def is_over(scene: Scene, trouble: Trouble, workspace: Body) -> None:
    if trouble.end == End.STARTS_AGAIN:
        until("it ended", lambda: scene.now(workspace)["phase"] in ("failed", "stopped", "ready"), 120)
        scene.start(workspace)
    until(
        f"it is over: {trouble.end.value}",
        lambda: (seen := scene.now(workspace))["phase"] == "ready" and trouble.words not in seen["message"],
        180,
    )
    if trouble.admin:
        until("the admin reads nothing of it", lambda: not scene.admin_reads(trouble.admin), 120)


DRIVER = "The node's NVIDIA driver is not loaded, or containers do not find it"
VERSIONS = "The parts of the node's NVIDIA driver are of different versions"
NO_UVM = "The node lacks a device that GPU programs need (/dev/nvidia-uvm)"
LOST = "A GPU of the node no longer answers"
DAMAGED = "The GPU's memory has a fault"
STUCK = "A GPU of the node hangs and has to be reset"
VANISHED = "Containers on the node lost their GPUs while they ran"
RUNTIME = "The node cannot start containers at the moment"
NETWORK = "The network of the node does not work"
UNWELL = "The storage is failing or unusually slow"
BROKEN = "The file system of its volume cannot be read"

TROUBLES = {
    # --- images: these come first, since a pulled image needs no registry
    "image is private": Trouble(
        "image_denied",
        "Cannot pull",
        at_start({"image": "far"}, image=FAR, error="unauthorized"),
        End.NONE,
    ),
    "registry refuses more pulls": Trouble(
        "image_rate_limited",
        "has reached its pull limit",
        at_start({"image": "far"}, image=FAR, error="rate-limit"),
        End.NONE,
    ),
    "registry does not answer": Trouble(
        "image_registry_unreachable",
        "do not reach the registry",
        at_start({"image": "far"}, image=FAR, error="timeout"),
        End.NONE,
    ),
    "no such image": Trouble(
        "image_not_found",
        "does not exist in its registry",
        at_start({"image": "far"}, image=FAR, error="not-found"),
    ),
    # --- network and runtime of a node
    "no address for the pod": Trouble(
        "network_plugin_down", NETWORK, at_start(pod="sandbox", error="no-address")
    ),
    "network plugin down": Trouble(
        "network_plugin_down", NETWORK, at_start(pod="sandbox", error="network-down")
    ),
    "runtime's socket refuses": Trouble(
        "node_unwell", RUNTIME, at_start(pod="sandbox", error="runtime-down")
    ),
    "runtime's socket refuses to look at the image": Trouble(
        "node_unwell", RUNTIME, at_start(image="*", error="runtime-down")
    ),
    # --- NVIDIA's toolkit
    "NVML library missing": Trouble(
        "gpu_driver_not_loaded", DRIVER, at_start(pod="container", error="no-nvml")
    ),
    "library missing at the start": Trouble(
        "gpu_driver_not_loaded", DRIVER, at_start(pod="container", error="no-library")
    ),
    "driver not loaded": Trouble(
        "gpu_driver_not_loaded", DRIVER, at_start(pod="container", error="no-driver")
    ),
    "driver and library differ": Trouble(
        "gpu_driver_mismatch", VERSIONS, at_start(pod="container", error="driver-mismatch")
    ),
    "driver too old for the image": Trouble(
        "gpu_software_unfit",
        "The CUDA version or the libraries of your image do not fit",
        at_start(pod="container", error="old-driver"),
    ),
    "devices.allow": Trouble(
        "gpu_nvml_failed",
        "NVIDIA driver and container tools do not work together",
        at_start(pod="container", error="devices-allow"),
    ),
    "no /dev/nvidia-uvm at the start": Trouble(
        "gpu_uvm_missing", NO_UVM, at_start(pod="container", error="no-uvm")
    ),
    # --- storage
    "can't read superblock": Trouble("volume_damaged", BROKEN, at_start(volume="mount", error="superblock")),
    "no metadata server": Trouble("storage_unwell", UNWELL, at_start(volume="mount", error="mds")),
    "osd flaps": Trouble(
        "storage_unwell",
        UNWELL,
        at_start(volume="attach", error="rpc error: code = Unavailable desc = 2 osds down, 31 slow ops"),
    ),
    "image of the volume does not map": Trouble(
        "volume_not_mountable",
        "The node cannot mount this kind of volume",
        at_start(volume="mount", error="rbd"),
    ),
    "mount refused past a number of hosts": Trouble(
        "volume_not_mountable",
        "The node cannot mount this kind of volume",
        at_start(volume="mount", error="denied"),
    ),
    "mount hangs": Trouble("storage_unwell", UNWELL, at_start(volume="mount", error="timeout")),
    "attached elsewhere": Trouble(
        "volume_attached_elsewhere",
        "Its volume is still attached to another container or node",
        at_start(volume="attach", error="elsewhere"),
    ),
    "attacher is silent": Trouble("storage_unwell", UNWELL, at_start(volume="attach", error="silent")),
    "no room for the volume": Trouble(
        "volume_disk_full", "The storage is full", at_start(volume="provision", error="full")
    ),
    "no node for its disk": Trouble("volume_node_out", "which takes nothing new now", no_node_for_its_disk),
    # --- exhausted resources
    "addresses of the load balancer": Trouble(
        "addresses_used_up", "All addresses or ports for workspaces are in use", addresses_used_up
    ),
    "not enough GPU memory": Trouble("no_free_cards", "with 9 GiB of memory", gpu_memory_taken),
    "quota of the namespace": Trouble(
        "namespace_quota_exceeded", "Your team's quota in this cluster is used up", namespace_full
    ),
    # --- GPUs of running workspaces
    "Xid of a program": Trouble(
        "gpu_program_fault",
        "A program on the GPU failed",
        to_a_newcomer(gpu="{gpu}", xid=31),
        End.NONE,
    ),
    "GPU lost": Trouble("gpu_lost", LOST, to_the_lab(gpu="{gpu}", state="lost"), End.RUNS_ON, LOST),
    "Xid of the hardware": Trouble("gpu_lost", LOST, gpu_that_an_admin_trusts_again, End.RUNS_ON, LOST),
    "ECC": Trouble(
        "gpu_memory_damaged", DAMAGED, to_the_lab(gpu="{gpu}", ecc_uncorrected=2), End.RUNS_ON, DAMAGED
    ),
    "row remap failed": Trouble(
        "gpu_memory_damaged", DAMAGED, to_the_lab(gpu="{gpu}", row_remap="failed"), End.RUNS_ON, DAMAGED
    ),
    "GPU wants a reset": Trouble(
        "gpu_stuck", STUCK, to_the_lab(gpu="{gpu}", state="reset_required"), End.RUNS_ON, STUCK
    ),
    "no /dev/nvidia-uvm": Trouble(
        "gpu_uvm_missing", NO_UVM, to_the_lab(node="{node}", agent="uvm_missing"), End.RUNS_ON, NO_UVM
    ),
    "driver updated under what runs": Trouble(
        "gpu_driver_mismatch",
        VERSIONS,
        to_the_lab(node="{node}", agent="version_mismatch"),
        End.RUNS_ON,
        VERSIONS,
    ),
    "driver unloaded under what runs": Trouble(
        "gpu_driver_not_loaded",
        DRIVER,
        to_the_lab(node="{node}", agent="driver_not_loaded"),
        End.RUNS_ON,
        DRIVER,
    ),
    "driver hangs": Trouble(
        "gpu_stuck", STUCK, to_the_lab(node="{node}", agent="nvml_hangs"), End.RUNS_ON, STUCK
    ),
    "GPU vanishes from the container": Trouble(
        "gpu_vanished", VANISHED, to_the_lab(node="{node}", agent="devices_denied"), End.RUNS_ON, VANISHED
    ),
    # --- faults of a node
    "node's network down": Trouble(
        "network_plugin_down", NETWORK, to_the_lab(node="{node}", state="not-ready"), End.RUNS_ON, NETWORK
    ),
    "node's runtime down": Trouble(
        "node_unwell", RUNTIME, to_the_lab(node="{node}", state="runtime-down"), End.RUNS_ON, RUNTIME
    ),
    "out of memory": Trouble(
        "out_of_memory", "It used more memory than allowed", out_of_memory, End.STARTS_AGAIN
    ),
    "not enough ephemeral storage": Trouble(
        "temporary_disk_full", "It wrote more temporary files than allowed", temporary_files, End.STARTS_AGAIN
    ),
    "disk pressure": Trouble(
        "evicted",
        "It was stopped because its node ran out of",
        to_a_newcomer(node="{node}", pressure="disk"),
        End.STARTS_AGAIN,
    ),
    "node lost": Trouble(
        "node_lost",
        "Its node does not answer any more",
        to_a_newcomer(node="{node}", state="unreachable"),
        End.RUNS_ON,
    ),
}
