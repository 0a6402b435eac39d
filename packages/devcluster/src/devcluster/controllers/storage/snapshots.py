"""Snapshots of volumes: a VolumeSnapshot is the request, its VolumeSnapshotContent the copy of the driver.

One controller simulates both of the real ones, snapshot-controller and the driver's csi-snapshotter, in their words.
"""

import time
from collections.abc import Iterable

from devcluster.api import Api, Writer
from devcluster.controllers.base import Controller
from devcluster.controllers.storage.background import Background
from devcluster.events import Recorder, reference
from devcluster.faults.volumefaults import RETRY_SECONDS, HeldBack, VolumeFaults
from devcluster.resources import PV, PVC, SNAPSHOT, SNAPSHOT_CLASS, SNAPSHOT_CONTENT, Kind, Obj
from devcluster.storage import DRIVERS, Data, driver_of, handle_of, size_of, without
from devcluster.store import Change
from devcluster.values.clock import now
from devcluster.values.quantity import show, whole

PREFIX = "snapshot.storage.kubernetes.io/"
CONTENT_GUARD = PREFIX + "volumesnapshotcontent-bound-protection"
GUARDS = (PREFIX + "volumesnapshot-as-source-protection", PREFIX + "volumesnapshot-bound-protection")
CLAIM_GUARD = PREFIX + "pvc-as-source-protection"
BEING_DELETED = PREFIX + "volumesnapshot-being-deleted"
RESYNC_SECONDS = 2.0
"""How often what is missing is looked for."""
_WRITER = Writer("snapshot-controller")
Key = tuple[Kind, str, str]


class Refused(Exception):
    """Refusal of a snapshot (for now), with reason and message of its event."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


class SnapshotController(Controller[Key]):
    def __init__(self, api: Api, data: Data, faults: VolumeFaults):
        super().__init__(api)
        self._data, self._faults = data, faults
        self._events = Recorder(api, "snapshot-controller", manager="snapshot-controller")
        self._copies = Background()

    def keys(self, change: Change) -> Iterable[Key]:
        meta = change.obj["metadata"]
        if change.kind is SNAPSHOT and change.type != "DELETED":
            yield SNAPSHOT, meta["namespace"], meta["name"]
        elif change.kind is SNAPSHOT_CONTENT:
            yield SNAPSHOT_CONTENT, "", meta["name"]
            ref = change.obj["spec"]["volumeSnapshotRef"]
            yield SNAPSHOT, ref["namespace"], ref["name"]

    async def reconcile(self, key: Key) -> float | None:
        obj = self.api.store.get(*key)
        if obj is None:
            return None
        if key[0] is SNAPSHOT_CONTENT:
            return await self._content(obj)
        if "deletionTimestamp" in obj["metadata"]:
            self._delete(obj)
            return None
        self._edit_finalizers(SNAPSHOT, obj, add=GUARDS)
        try:
            self._take_up(obj)
        except Refused as refused:
            self._tell_error(obj, refused)
            return RESYNC_SECONDS
        return None

    # --- VolumeSnapshots

    def _take_up(self, snapshot: Obj) -> None:
        """Find or make the snapshot's content, and copy the content's state to the snapshot's status."""
        if (snapshot.get("status") or {}).get("readyToUse"):
            return
        given = snapshot["spec"]["source"].get("volumeSnapshotContentName")
        content = self._given(snapshot, given) if given else self._made(snapshot)
        status: Obj = content.get("status") or {}
        told: Obj = {"boundVolumeSnapshotContentName": content["metadata"]["name"]}
        told["readyToUse"] = bool(status.get("readyToUse"))
        if "creationTime" in status:
            made = time.gmtime(status["creationTime"] / 1e9)
            told["creationTime"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", made)
        if "restoreSize" in status:
            told["restoreSize"] = show(status["restoreSize"] * 1000, like="Gi")
        if "error" in status:
            told["error"] = status["error"]
        self.api.set_status(SNAPSHOT, snapshot, told, _WRITER.manager)
        if told["readyToUse"]:
            which = f"{snapshot['metadata']['namespace']}/{snapshot['metadata']['name']}"
            created = f"Snapshot {which} was successfully created by the CSI driver."
            self._events.event(SNAPSHOT, snapshot, "Normal", "SnapshotCreated", created)
            self._events.event(
                SNAPSHOT, snapshot, "Normal", "SnapshotReady", f"Snapshot {which} is ready to use."
            )

    def _given(self, snapshot: Obj, name: str) -> Obj:
        """Return a content that an admin made."""
        content = self.api.store.get(SNAPSHOT_CONTENT, "", name)
        if content is None:
            raise Refused("SnapshotContentMissing", "VolumeSnapshotContent is missing")
        ref, meta = content["spec"]["volumeSnapshotRef"], snapshot["metadata"]
        mine = (ref["namespace"], ref["name"]) == (meta["namespace"], meta["name"])
        if not mine or ref.get("uid") not in (None, "", meta["uid"]):
            why = f"VolumeSnapshotContent [{name}] is bound to a different snapshot"
            raise Refused("SnapshotContentMisbound", why)

        def bind(obj: Obj) -> Obj:
            obj["spec"]["volumeSnapshotRef"]["uid"] = meta["uid"]
            return obj

        return self.api.update(SNAPSHOT_CONTENT, "", name, bind, _WRITER)

    def _made(self, snapshot: Obj) -> Obj:
        meta = snapshot["metadata"]
        name = f"snapcontent-{meta['uid']}"
        if found := self.api.store.get(SNAPSHOT_CONTENT, "", name):
            return found
        found_class = self._class(snapshot)
        claim, volume = self._source(snapshot)
        self._edit_finalizers(PVC, claim, add=(CLAIM_GUARD,))
        spec: Obj = {"deletionPolicy": found_class["deletionPolicy"], "driver": found_class["driver"]}
        spec |= {
            "source": {"volumeHandle": handle_of(volume)},
            "volumeSnapshotRef": reference(SNAPSHOT, snapshot),
        }
        spec["volumeSnapshotClassName"] = found_class["metadata"]["name"]
        spec["sourceVolumeMode"] = volume["spec"].get("volumeMode", "Filesystem")
        body: Obj = {"metadata": {"name": name, "finalizers": [CONTENT_GUARD]}, "spec": spec}
        content = self.api.create(SNAPSHOT_CONTENT, "", body, _WRITER)
        message = (
            f"Waiting for a snapshot {meta['namespace']}/{meta['name']} to be created by the CSI driver."
        )
        self._events.event(SNAPSHOT, snapshot, "Normal", "CreatingSnapshot", message)
        return content

    def _class(self, snapshot: Obj) -> Obj:
        """Return the class that the snapshot names, or the default class of its volume's driver."""
        if name := snapshot["spec"].get("volumeSnapshotClassName"):
            found = self.api.store.get(SNAPSHOT_CLASS, "", name)
            if found is None:
                why = f'volumesnapshotclass.snapshot.storage.k8s.io "{name}" not found'
                raise Refused("GetSnapshotClassFailed", f"Failed to get snapshot class with error {why}")
            return found
        _, volume = self._source(snapshot)
        driver = (volume["spec"].get("csi") or {}).get("driver", "")
        for found in self.api.store.all(SNAPSHOT_CLASS):
            annotations = found["metadata"].get("annotations") or {}
            if annotations.get(PREFIX + "is-default-class") == "true" and found["driver"] == driver:
                self._name_class(snapshot, found["metadata"]["name"])
                return found
        why = "cannot find default snapshot class"
        raise Refused(
            "SetDefaultSnapshotClassFailed", f"Failed to set default snapshot class with error {why}"
        )

    def _name_class(self, snapshot: Obj, name: str) -> None:
        meta, chosen = snapshot["metadata"], {"volumeSnapshotClassName": name}
        self.api.update(
            SNAPSHOT, meta["namespace"], meta["name"], lambda o: o | {"spec": o["spec"] | chosen}, _WRITER
        )

    def _source(self, snapshot: Obj) -> tuple[Obj, Obj]:
        """Return the claim and the volume to be copied."""
        meta, head = snapshot["metadata"], "Failed to create snapshot content with error"
        name = snapshot["spec"]["source"].get("persistentVolumeClaimName", "")
        claim = self.api.store.get(PVC, meta["namespace"], name)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            why = f"snapshot controller failed to update {meta['name']} on API server: cannot get claim from snapshot"
            raise Refused("SnapshotContentCreationFailed", f"{head} {why}")
        if claim["status"].get("phase") != "Bound":
            why = f"the PVC {name} is not yet bound to a PV, will not attempt to take a snapshot"
            why = f'failed to get input parameters to create snapshot {meta["name"]}: "{why}"'
            raise Refused("SnapshotContentCreationFailed", f"{head} {why}")
        volume = self.api.get(PV, "", claim["spec"]["volumeName"])
        if "csi" not in volume["spec"]:
            why = f"cannot find CSI PersistentVolumeSource for volume {volume['metadata']['name']}"
            raise Refused("SnapshotContentCreationFailed", f"{head} {why}")
        return claim, volume

    def _tell_error(self, snapshot: Obj, refused: Refused) -> None:
        status: Obj = snapshot.get("status") or {}
        if status.get("error", {}).get("message") == str(refused):
            return
        error = {"message": str(refused), "time": now()}
        self.api.set_status(
            SNAPSHOT, snapshot, status | {"error": error, "readyToUse": False}, _WRITER.manager
        )
        self._events.event(SNAPSHOT, snapshot, "Warning", refused.reason, str(refused))

    def _delete(self, snapshot: Obj) -> None:
        """Remove the finalizers of a deleted snapshot; delete its content if the policy is Delete."""
        name = (snapshot.get("status") or {}).get("boundVolumeSnapshotContentName", "")
        if content := self.api.store.get(SNAPSHOT_CONTENT, "", name):
            marked = {BEING_DELETED: "yes"}

            def mark(obj: Obj) -> Obj:
                obj["metadata"]["annotations"] = obj["metadata"].get("annotations", {}) | marked
                return obj

            content = self.api.update(SNAPSHOT_CONTENT, "", name, mark, _WRITER)
            if content["spec"]["deletionPolicy"] == "Delete":
                self.api.try_delete(SNAPSHOT_CONTENT, content)
        self._edit_finalizers(SNAPSHOT, snapshot, remove=GUARDS)

    # --- VolumeSnapshotContents

    async def _content(self, content: Obj) -> float | None:
        if "deletionTimestamp" in content["metadata"]:
            return await self._discard(content)
        if (content.get("status") or {}).get("readyToUse") or content["spec"]["driver"] not in DRIVERS:
            return None
        try:
            return self._copy(content)
        except (HeldBack, OSError) as error:
            if str(error):
                self._tell_copy_failed(content, str(error))
            return RETRY_SECONDS

    def _copy(self, content: Obj) -> float | None:
        """Make the copy, then report it as ready; raise HeldBack while a fault is active."""
        name, source = content["metadata"]["name"], content["spec"]["source"]
        if handle := source.get("snapshotHandle"):  # the copy existed before its content
            self._tell_ready(content, handle, 0)
            return None
        volume = next((v for v in self.api.store.each(PV) if _is(v, source["volumeHandle"])), None)
        if (
            volume is None
            or (driver := driver_of(volume)) is None
            or driver.name != content["spec"]["driver"]
        ):
            raise HeldBack("rpc error: code = NotFound desc = no such volume: " + source["volumeHandle"])
        ref = volume["spec"].get("claimRef") or {}
        claim = self.api.store.get(PVC, ref.get("namespace", ""), ref.get("name", ""))
        if claim:
            self._faults.bear("snapshot", claim)
        handle = _handle(name)

        def again() -> None:
            self.add((SNAPSHOT_CONTENT, "", name))

        if self._copies.done(name, lambda: self._data.copy(source["volumeHandle"], handle), again):
            self._tell_ready(content, handle, whole(size_of(volume)))
            if claim:
                self._edit_finalizers(PVC, claim, remove=(CLAIM_GUARD,))
        return None

    def _tell_ready(self, content: Obj, handle: str, size_bytes: int) -> None:
        status: Obj = {"creationTime": time.time_ns(), "readyToUse": True, "restoreSize": size_bytes}
        status["snapshotHandle"] = handle
        self.api.set_status(SNAPSHOT_CONTENT, content, status, content["spec"]["driver"])

    def _tell_copy_failed(self, content: Obj, why: str) -> None:
        status: Obj = content.get("status") or {}
        handle = content["spec"]["source"].get("volumeHandle", "")
        quoted = why.replace('"', '\\"')
        failed = f'failed to take snapshot of the volume {handle}: "{quoted}"'
        message = f"Failed to check and update snapshot content: {failed}"
        if status.get("error", {}).get("message") == message:
            return
        error = {"message": message, "time": now()}
        self.api.set_status(SNAPSHOT_CONTENT, content, status | {"error": error, "readyToUse": False})
        reason = "SnapshotContentCheckandUpdateFailed"
        self._events.event(SNAPSHOT_CONTENT, content, "Warning", reason, message)

    async def _discard(self, content: Obj) -> float | None:
        name = content["metadata"]["name"]
        if self._copies.busy(name):
            return RETRY_SECONDS
        if content["spec"]["deletionPolicy"] == "Delete":
            await self._data.discard((content.get("status") or {}).get("snapshotHandle") or _handle(name))
        self._edit_finalizers(SNAPSHOT_CONTENT, content, remove=(CONTENT_GUARD,))
        return None

    def _edit_finalizers(
        self, kind: Kind, obj: Obj, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> None:
        def change(o: Obj) -> Obj:
            kept = o["metadata"].get("finalizers", [])
            for name in remove:
                kept = without(kept, name)
            o["metadata"]["finalizers"] = [*kept, *(name for name in add if name not in kept)]
            return o

        meta = obj["metadata"]
        self.api.update(kind, meta.get("namespace", ""), meta["name"], change, _WRITER)


def _handle(content: str) -> str:
    return "snapshot-" + content.removeprefix("snapcontent-")


def _is(volume: Obj, handle: str) -> bool:
    return (volume["spec"].get("csi") or {}).get("volumeHandle") == handle
