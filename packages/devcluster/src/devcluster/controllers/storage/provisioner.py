"""Provisioner of the drivers: makes the volumes that claims ask for, deletes those whose claims are gone."""

from collections.abc import Iterable, Mapping

from devcluster.api import Api, Writer
from devcluster.controllers.base import Controller
from devcluster.controllers.storage.background import Background
from devcluster.controllers.storage.sources import Unusable, is_ours, source_handle, source_of
from devcluster.controllers.storage.volumes import PROVISIONED_BY, PROVISIONERS
from devcluster.events import Recorder, reference
from devcluster.faults.volumefaults import RETRY_SECONDS, HeldBack, VolumeFaults
from devcluster.resources import PV, PVC, STORAGE_CLASS, VOLUME_ATTACHMENT, Kind, Obj
from devcluster.storage import (
    DRIVERS,
    FIRST_USE,
    SELECTED_NODE,
    Data,
    Driver,
    DriverError,
    driver_of,
    handle_of,
    requested,
    without,
)
from devcluster.store import Change
from devcluster.values.quantity import whole

FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
SOURCE_SECONDS = 1.0
"""How often a source that cannot be used yet is looked at."""
Key = tuple[Kind, str, str]


class Provisioner(Controller[Key]):
    def __init__(self, api: Api, data: Data, faults: VolumeFaults):
        super().__init__(api)
        self._data, self._faults = data, faults
        self._copies = Background()
        self._events = {name: Recorder(api, name, manager=name) for name in DRIVERS}

    def keys(self, change: Change) -> Iterable[Key]:
        meta = change.obj["metadata"]
        if change.type == "DELETED":
            return
        if change.kind is PVC and not change.obj["spec"].get("volumeName"):
            yield PVC, meta["namespace"], meta["name"]
        elif change.kind is PV and driver_of(change.obj):
            yield PV, "", meta["name"]

    async def reconcile(self, key: Key) -> float | None:
        kind, namespace, name = key
        obj = self.api.store.get(kind, namespace, name)
        if obj is None:
            return None
        if kind is PV:
            return await self._volume(obj)
        return self._claim(obj)

    # --- Making

    def _claim(self, claim: Obj) -> float | None:
        annotations = claim["metadata"].get("annotations") or {}
        driver = DRIVERS.get(annotations.get(PROVISIONERS[-1], ""))
        found = self.api.store.get(STORAGE_CLASS, "", claim["spec"].get("storageClassName") or "")
        if driver is None or found is None or claim["spec"].get("volumeName"):
            return None
        if "deletionTimestamp" in claim["metadata"] or self.api.store.get(PV, "", _name(claim)):
            return None
        if found["volumeBindingMode"] == FIRST_USE and SELECTED_NODE not in annotations:
            return None
        return self._provision(claim, found, driver)

    def _provision(self, claim: Obj, storage_class: Obj, driver: Driver) -> float | None:
        events, source = self._events[driver.name], source_of(claim)
        if source and not is_ours(source):
            message = "Assuming an external populator will provision the volume"
            events.event(PVC, claim, "Normal", "Provisioning", message)
            return None
        meta = claim["metadata"]
        which = f'"{meta["namespace"]}/{meta["name"]}"'
        message = f"External provisioner is provisioning volume for claim {which}"
        events.event(PVC, claim, "Normal", "Provisioning", message)
        try:
            self._faults.bear("provision", claim)
            check_size(requested(claim), storage_class.get("parameters") or {})
            if source and not self._copied(claim, source_handle(self.api, claim, source, driver)):
                return None
        except HeldBack as held:
            self._tell_failed(claim, driver, held.error)
            return RETRY_SECONDS
        except (DriverError, Unusable, OSError) as error:
            self._tell_failed(claim, driver, str(error))
            return SOURCE_SECONDS
        self.api.create(PV, "", _volume(claim, storage_class, driver), Writer(driver.name))
        message = f"Successfully provisioned volume {_name(claim)}"
        events.event(PVC, claim, "Normal", "ProvisioningSucceeded", message)
        return None

    def _copied(self, claim: Obj, source: str) -> bool:
        meta = claim["metadata"]
        key: Key = (PVC, meta["namespace"], meta["name"])

        async def copy() -> None:
            await self._data.copy(source, _name(claim))
            if (self.api.store.get(*key) or {}).get("metadata", {}).get("uid") != meta["uid"]:
                await self._data.discard(_name(claim))  # the claim was deleted in the meantime

        return self._copies.done(meta["uid"], copy, lambda: self.add(key))

    def _tell_failed(self, claim: Obj, driver: Driver, why: str) -> None:
        if why:
            name = claim["spec"]["storageClassName"]
            message = f'failed to provision volume with StorageClass "{name}": {why}'
            self._events[driver.name].event(PVC, claim, "Warning", "ProvisioningFailed", message)

    # --- Deleting

    async def _volume(self, volume: Obj) -> float | None:
        meta, deletes = volume["metadata"], volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        guarded = FINALIZER in meta.get("finalizers", [])
        if guarded and not deletes:
            self._set_guard(volume, False)
        elif deletes and not guarded and "deletionTimestamp" not in meta:
            self._set_guard(volume, True)
        elif deletes and (volume.get("status") or {}).get("phase") in ("Released", "Failed"):
            return await self._delete(volume)
        return None

    async def _delete(self, volume: Obj) -> float | None:
        name, driver = volume["metadata"]["name"], driver_of(volume)
        assert driver
        if node := self._attached_to(name):
            message = f"persistentvolume {name} is still attached to node {node}"
            self._events[driver.name].event(PV, volume, "Warning", "VolumeFailedDelete", message)
            return SOURCE_SECONDS
        await self._data.discard(handle_of(volume))
        self.api.try_delete(PV, volume)
        if left := self.api.store.get(PV, "", name):
            self._set_guard(left, False)
        return None

    def _attached_to(self, volume: str) -> str:
        for attachment in self.api.store.each(VOLUME_ATTACHMENT):
            if attachment["spec"]["source"].get("persistentVolumeName") == volume:
                return str(attachment["spec"]["nodeName"])
        return ""

    def _set_guard(self, volume: Obj, on: bool) -> None:
        def change(obj: Obj) -> Obj:
            others = without(obj["metadata"].get("finalizers", []), FINALIZER)
            obj["metadata"]["finalizers"] = [*others, FINALIZER] if on else others
            return obj

        self.api.update(PV, "", volume["metadata"]["name"], change, Writer(volume["spec"]["csi"]["driver"]))


def _name(claim: Obj) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def check_size(size: str, parameters: Mapping[str, str]) -> None:
    """Raise DriverError if the class's parameters do not allow a volume of this size."""
    if (most := parameters.get("maxSize")) and whole(size) > whole(most):
        raise DriverError(
            "OutOfRange", f"requested size {size} is more than the {most} that a volume can have"
        )


def _volume(claim: Obj, storage_class: Obj, driver: Driver) -> Obj:
    name = _name(claim)
    csi: Obj = {"driver": driver.name, "volumeHandle": name}
    if parameters := storage_class.get("parameters"):
        csi["volumeAttributes"] = dict(parameters)
    spec: Obj = {
        "capacity": {"storage": requested(claim)},
        "accessModes": claim["spec"]["accessModes"],
        "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
        "storageClassName": storage_class["metadata"]["name"],
        "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
        "csi": csi,
        "claimRef": reference(PVC, claim),
    }
    if mount_options := storage_class.get("mountOptions"):
        spec["mountOptions"] = mount_options
    node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
    if node and not driver.attached:  # the disk is on that node
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    finalizers = [FINALIZER] if storage_class["reclaimPolicy"] == "Delete" else []
    meta: Obj = {"name": name, "annotations": {PROVISIONED_BY: driver.name}, "finalizers": finalizers}
    return {"metadata": meta, "spec": spec}
