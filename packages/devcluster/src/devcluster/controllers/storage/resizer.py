"""Growth of bound claims: the driver enlarges the volume, a node its file system, reported as by the CSI resizer.

The claim's conditions and `allocatedResourceStatuses` show a failure; the request may then be lowered to anything
above the present size.
"""

from collections.abc import Iterable, Sequence

from devcluster.api import Api, Writer
from devcluster.controllers.base import Controller
from devcluster.controllers.storage.provisioner import check_size
from devcluster.events import Recorder
from devcluster.faults.volumefaults import RETRY_SECONDS, HeldBack, VolumeFaults
from devcluster.nodes import KUBELET
from devcluster.resources import POD, PV, PVC, Obj
from devcluster.storage import (
    DRIVERS,
    Data,
    Driver,
    DriverError,
    claims_of,
    driver_of,
    ended,
    handle_of,
    requested,
    size_of,
)
from devcluster.store import Change
from devcluster.values.clock import now
from devcluster.values.quantity import milli

INFEASIBLE = ("InvalidArgument", "OutOfRange", "NotFound")
"""A driver that answers with one of these codes is not asked again for the same size soon."""
INFEASIBLE_SECONDS = 5.0
PENDING = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
Key = tuple[str, str]


class Resizer(Controller[Key]):
    def __init__(self, api: Api, data: Data, faults: VolumeFaults):
        super().__init__(api)
        self._data, self._faults = data, faults
        self._events = Recorder(api, "volume_expand")
        self._drivers = {name: Recorder(api, f"external-resizer {name}", manager=name) for name in DRIVERS}
        self._growing: set[Key] = set()
        self._mounted: dict[Key, Obj] = {}
        """The pod, perhaps ended again, that came to a volume that had grown and that no other pod had."""

    def keys(self, change: Change) -> Iterable[Key]:
        meta = change.obj["metadata"]
        if change.kind is PVC:
            key = meta["namespace"], meta["name"]
            if change.type != "DELETED" and _wants_more(change.obj):
                self._growing.add(key)
                yield key
            else:
                self._growing.discard(key)
                self._mounted.pop(key, None)
        elif change.kind is POD and self._growing:
            keys = [(meta["namespace"], claim) for claim in claims_of(change.obj)]
            keys = [key for key in keys if key in self._growing]
            if _comes(change):
                self._mounted |= {key: change.obj for key in keys if self._mounts_anew(key)}
            yield from keys

    async def reconcile(self, key: Key) -> float | None:
        claim = self.api.store.get(PVC, *key)
        if claim is None or not _wants_more(claim):
            return None
        volume = self.api.store.get(PV, "", claim["spec"].get("volumeName", ""))
        if volume is None:
            return None
        if _state(claim) == "NodeResizePending":
            await self._on_node(key, claim, volume)
            return None
        if not _state(claim):
            message = "waiting for an external controller to expand this PVC"
            self._events.event(PVC, claim, "Normal", "ExternalExpanding", message)
        driver = driver_of(volume)
        return await self._enlarge(key, claim, volume, driver) if driver else None

    # --- Driver: the volume

    async def _enlarge(self, key: Key, claim: Obj, volume: Obj, driver: Driver) -> float | None:
        name, size, events = volume["metadata"]["name"], requested(claim), self._drivers[driver.name]
        if _allocated(claim) != size:
            claim = self._set(claim, "ControllerResizeInProgress", [_condition(claim, "Resizing")])
        events.event(PVC, claim, "Normal", "Resizing", f"External resizer is resizing volume {name}")
        try:
            self._faults.bear("expand", claim)
            check_size(size, _parameters(volume))
        except HeldBack as held:
            return self._fail(claim, name, driver, held.error) if held.error else RETRY_SECONDS
        except DriverError as error:
            return self._fail(claim, name, driver, str(error))
        grown = {"capacity": {"storage": size}}
        volume = self.api.update(PV, "", name, lambda o: o | {"spec": o["spec"] | grown}, Writer(driver.name))
        if (
            not driver.grows_on_node
            and not _offline(volume)
            and await self._data.grow(handle_of(volume), size)
        ):
            self._finish(claim, size)
            events.event(PVC, claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")
            return None
        conditions = [_condition(claim, "Resizing"), _condition(claim, "FileSystemResizePending", PENDING)]
        claim = self._set(claim, "NodeResizePending", conditions)
        message = "Require file system resize of volume on node"
        events.event(PVC, claim, "Normal", "FileSystemResizeRequired", message)
        await self._on_node(key, claim, volume)
        return None

    def _fail(self, claim: Obj, volume: str, driver: Driver, why: str) -> float:
        message = f'resize volume "{volume}" by resizer "{driver.name}" failed: {why}'
        self._drivers[driver.name].event(PVC, claim, "Warning", "VolumeResizeFailed", message)
        infeasible = any(f"code = {code} " in why for code in INFEASIBLE)
        error = _condition(claim, "ControllerResizeError", f"failed to expand pvc with {why}")
        state = "ControllerResizeInfeasible" if infeasible else "ControllerResizeInProgress"
        self._set(claim, state, [_condition(claim, "Resizing"), error])
        return INFEASIBLE_SECONDS if infeasible else RETRY_SECONDS

    # --- Node: the file system

    async def _on_node(self, key: Key, claim: Obj, volume: Obj) -> None:
        """Grow the file system where a pod has it mounted; an offline one only if that pod came after the growth."""
        size, mounted = size_of(volume), self._mounted.get(key)
        users = self._users(claim) or ([mounted] if mounted else [])
        if users and _offline(volume) and not mounted:
            return
        if not await self._data.grow(handle_of(volume), size) or not users:
            return
        self._finish(claim, size)
        name = volume["metadata"]["name"]
        for pod in users:
            node = pod["spec"]["nodeName"]
            message = f'MountVolume.NodeExpandVolume succeeded for volume "{name}" {node}'
            kubelet = Recorder(self.api, KUBELET, node, KUBELET)
            kubelet.event(POD, pod, "Normal", "FileSystemResizeSuccessful", message)
            kubelet.event(PVC, claim, "Normal", "FileSystemResizeSuccessful", message)

    def _mounts_anew(self, key: Key) -> bool:
        """Return True if the driver is done and the claim has one user, whose mount grows the file system."""
        claim = self.api.store.get(PVC, *key)
        return claim is not None and _state(claim) == "NodeResizePending" and len(self._users(claim)) == 1

    def _users(self, claim: Obj) -> list[Obj]:
        meta = claim["metadata"]
        pods = self.api.store.all(POD, meta["namespace"])
        return [p for p in pods if _is_on_node(p) and meta["name"] in claims_of(p)]

    # --- Status of the claim

    def _set(self, claim: Obj, state: str, conditions: Sequence[Obj]) -> Obj:
        status = claim["status"] | {"conditions": list(conditions)}
        status |= {"allocatedResources": {"storage": requested(claim)}}
        status |= {"allocatedResourceStatuses": {"storage": state}}
        return self.api.set_status(PVC, claim, status) or claim

    def _finish(self, claim: Obj, size: str) -> None:
        over = ("conditions", "allocatedResourceStatuses")
        status = {k: v for k, v in claim["status"].items() if k not in over}
        self.api.set_status(PVC, claim, status | {"capacity": {"storage": size}})


def _comes(change: Change) -> bool:
    """Return True if this change assigned the pod to a node."""
    return _is_on_node(change.obj) and not (change.old and change.old["spec"].get("nodeName"))


def _is_on_node(pod: Obj) -> bool:
    return bool(pod["spec"].get("nodeName")) and not ended(pod)


def _wants_more(claim: Obj) -> bool:
    had = claim["status"].get("capacity", {}).get("storage")
    return (
        claim["status"].get("phase") == "Bound" and had is not None and milli(requested(claim)) > milli(had)
    )


def _state(claim: Obj) -> str:
    return str(claim["status"].get("allocatedResourceStatuses", {}).get("storage", ""))


def _allocated(claim: Obj) -> str:
    return str(claim["status"].get("allocatedResources", {}).get("storage", ""))


def _parameters(volume: Obj) -> dict[str, str]:
    found: dict[str, str] = (volume["spec"].get("csi") or {}).get("volumeAttributes") or {}
    return found


def _offline(volume: Obj) -> bool:
    return _parameters(volume).get("expansion") == "offline"


def _condition(claim: Obj, kind: str, message: str = "") -> Obj:
    """Return the condition, with the time of the present one of this type."""
    known: Obj = next((c for c in claim["status"].get("conditions", []) if c["type"] == kind), {})
    since = known.get("lastTransitionTime", now())
    condition: Obj = {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": since}
    return condition | ({"message": message} if message else {})
