"""Storage of the cluster: two drivers, a class of each, and helpers that read volumes, claims and pods.

`local-fast` is a disk of one node, made when its first pod has a node: nothing to attach, no snapshots, no clones.
`net-shared` is reached from every node, made at once, attached to the nodes that use it (to one at a time unless its
mode allows many), with snapshots and clones. Your own class may name either driver, with these parameters:

- `expansion: offline`   the volume grows once its pod was stopped and started
- `maxSize: 10Gi`        no volume is made or grown beyond this size
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.resources import CSI_DRIVER, SNAPSHOT_CLASS, STORAGE_CLASS, Kind, Obj
from devcluster.rules.admission import DEFAULT_CLASS

SELECTED_NODE = "volume.kubernetes.io/selected-node"
FIRST_USE = "WaitForFirstConsumer"


@dataclass(frozen=True)
class Driver:
    name: str
    attached: bool
    """A VolumeAttachment comes before a mount."""
    copies: bool
    """Snapshots, and volumes made from snapshots or other volumes."""
    grows_on_node: bool
    """A larger volume needs its file system grown, by the node of a pod that has it."""
    storage_class: str
    binding: str

    @property
    def external_name(self) -> str:
        return self.name.replace(".", "-")


LOCAL = Driver("local.devcluster.local", False, False, True, "local-fast", FIRST_USE)
NET = Driver("net.devcluster.local", True, True, False, "net-shared", "Immediate")
EARLIER = "disks.devcluster.local"
"""What made volumes of both classes once; a state directory of that time gets classes that somebody serves."""
DRIVERS = {driver.name: driver for driver in (LOCAL, NET)}


class Data(Protocol):
    """Contents of volumes and snapshots, by the handles that the drivers gave them."""

    async def copy(self, source: str, target: str) -> None:
        """Copy `source` as it is at one moment."""

    async def grow(self, handle: str, size: str) -> bool:
        """Grow the file system. Return False if that has to wait until no pod has it mounted."""
        ...

    async def discard(self, handle: str) -> None:
        """Delete the contents for good."""


class NoData:
    """Stand-in for Data: simulated pods store nothing."""

    async def copy(self, source: str, target: str) -> None:
        pass

    async def grow(self, handle: str, size: str) -> bool:
        return True

    async def discard(self, handle: str) -> None:
        pass


class DriverError(Exception):
    """Refusal of a driver, in the words of gRPC: code and description."""

    def __init__(self, code: str, description: str):
        super().__init__(f"rpc error: code = {code} desc = {description}")
        self.code = code


def furnish(api: Api) -> None:
    """Create the drivers and classes of a new cluster."""
    for driver in DRIVERS.values():
        spec: Obj = {"attachRequired": driver.attached, "podInfoOnMount": False, "storageCapacity": False}
        spec |= {"volumeLifecycleModes": ["Persistent"], "fsGroupPolicy": "File"}
        _make(api, CSI_DRIVER, {"metadata": {"name": driver.name}, "spec": spec})
        annotations = {DEFAULT_CLASS: "true"} if driver is LOCAL else {}
        body: Obj = {"metadata": {"name": driver.storage_class, "annotations": annotations}}
        body |= {
            "provisioner": driver.name,
            "volumeBindingMode": driver.binding,
            "allowVolumeExpansion": True,
        }
        found = api.store.get(STORAGE_CLASS, "", driver.storage_class)
        if found and found["provisioner"] == EARLIER:
            api.try_delete(STORAGE_CLASS, found)
        _make(api, STORAGE_CLASS, body)
    annotations = {"snapshot.storage.kubernetes.io/is-default-class": "true"}
    body = {"metadata": {"name": NET.storage_class, "annotations": annotations}}
    _make(api, SNAPSHOT_CLASS, body | {"driver": NET.name, "deletionPolicy": "Delete"})


def _make(api: Api, kind: Kind, body: Obj) -> None:
    if api.store.get(kind, "", body["metadata"]["name"]) is None:
        api.create(kind, "", body, Writer(CONTROLLER))


def driver_of(volume: Obj) -> Driver | None:
    """Return the driver that made a volume, or None if none of ours did."""
    return DRIVERS.get((volume["spec"].get("csi") or {}).get("driver", ""))


def handle_of(volume: Obj) -> str:
    """Return the key of a volume's contents: the driver's handle, or the name of a volume of no driver."""
    csi = volume["spec"].get("csi") or {}
    return str(csi.get("volumeHandle") or volume["metadata"]["name"]).replace("/", "_")


def size_of(volume: Obj) -> str:
    return str(volume["spec"]["capacity"]["storage"])


def requested(claim: Obj) -> str:
    return str(claim["spec"]["resources"]["requests"]["storage"])


def exclusive(volume: Obj) -> bool:
    """Return True if the volume may be attached to one node only at a time."""
    return not {"ReadWriteMany", "ReadOnlyMany"} & set(volume["spec"].get("accessModes") or [])


def claims_of(pod: Obj) -> list[str]:
    """Return the names of the claims that the pod mounts, also of those that are made for it alone."""
    names = (claim_name(pod, volume) for volume in pod["spec"].get("volumes") or [])
    return [name for name in names if name]


def claim_name(pod: Obj, volume: Obj) -> str:
    """Return the name of the claim behind a volume of the pod; empty if it has none."""
    if "ephemeral" in volume:
        return f"{pod['metadata']['name']}-{volume['name']}"
    return str((volume.get("persistentVolumeClaim") or {}).get("claimName", ""))


def ended(pod: Obj) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def without(values: Iterable[str], value: str) -> list[str]:
    return [v for v in values if v != value]
