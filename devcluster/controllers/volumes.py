"""Claims and volumes: binding, provisioning, growth, protection while in use, and what becomes of them after.

Two classes are served: `local-fast` (on one node, bound at first use) and `net-shared` (everywhere, at once, many
writers). The data itself is made at the first mount, by the kubelet.
"""

from collections.abc import Callable, Iterable

from devcluster.admission import DEFAULT_CLASS
from devcluster.api import CONTROLLER, Api, Writer
from devcluster.clock import now
from devcluster.controllers.base import Controller
from devcluster.events import Recorder
from devcluster.quantity import milli
from devcluster.resources import POD, PV, PVC, STORAGE_CLASS, Kind, Obj
from devcluster.store import Change

PROVISIONER = "disks.devcluster.local"
GROWTH_SECONDS = 1.0
"""How often a growth that waits for its pod to stop is tried."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
Key = tuple[Kind, str, str]


def create_classes(api: Api) -> None:
    """The storage classes of a fresh cluster."""
    for name, mode, default in (
        ("local-fast", "WaitForFirstConsumer", True),
        ("net-shared", "Immediate", False),
    ):
        if api.store.get(STORAGE_CLASS, "", name) is None:
            annotations = {DEFAULT_CLASS: "true"} if default else {}
            body: Obj = {"metadata": {"name": name, "annotations": annotations}, "provisioner": PROVISIONER}
            body |= {"volumeBindingMode": mode, "allowVolumeExpansion": True}
            api.create(STORAGE_CLASS, "", body, Writer(CONTROLLER))


class VolumeController(Controller[Key]):
    def __init__(self, api: Api, grow: Callable[[str, str], bool], discard: Callable[[str], None]):
        super().__init__(api)
        self._grow, self._discard = grow, discard
        self._events = Recorder(api, "persistentvolume-controller")
        self._provisioner = Recorder(api, PROVISIONER, manager=PROVISIONER)

    def keys(self, change: Change) -> Iterable[Key]:
        meta = change.obj["metadata"]
        if change.kind is PVC:
            yield PVC, meta["namespace"], meta["name"]
            if volume := change.obj["spec"].get("volumeName"):
                yield PV, "", volume
        elif change.kind is PV:
            yield PV, "", meta["name"]
            claim = change.obj["spec"].get("claimRef") or {}
            if claim:
                yield PVC, claim["namespace"], claim["name"]
        elif change.kind is POD and (change.type != "MODIFIED" or _ended(change.obj)):
            for claim in claims_of(change.obj):
                yield PVC, meta["namespace"], claim

    async def reconcile(self, key: Key) -> float | None:
        kind, namespace, name = key
        obj = self.api.store.get(kind, namespace, name)
        if obj is None:
            return None
        return self._volume(obj) if kind is PV else self._claim(obj)

    def _claim(self, claim: Obj) -> float | None:
        if "deletionTimestamp" in claim["metadata"]:
            if not self._in_use(claim):
                self._release(PVC, claim, "kubernetes.io/pvc-protection")
            return None
        if claim["status"].get("phase") != "Bound":
            return self._bind(claim)
        asked, had = claim["spec"]["resources"]["requests"]["storage"], claim["status"]["capacity"]["storage"]
        return self._expand(claim, asked) if milli(asked) > milli(had) else None

    def _in_use(self, claim: Obj) -> bool:
        pods = self.api.store.each(POD, claim["metadata"]["namespace"])
        return any(claim["metadata"]["name"] in claims_of(p) and not _ended(p) for p in pods)

    def _release(self, kind: Kind, obj: Obj, finalizer: str) -> None:
        def change(o: Obj) -> Obj:
            o["metadata"]["finalizers"] = [f for f in o["metadata"].get("finalizers", []) if f != finalizer]
            return o

        meta = obj["metadata"]
        self.api.update(kind, meta.get("namespace", ""), meta["name"], change, Writer(CONTROLLER))

    def _bind(self, claim: Obj) -> float | None:
        if volume := self._fitting(claim):
            self._join(claim, volume)
            return None
        name = claim["spec"].get("storageClassName")
        if not name:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._events.event(PVC, claim, "Normal", "FailedBinding", message)
            return 15.0
        found = self.api.store.get(STORAGE_CLASS, "", name)
        if found is None:
            message = f'storageclass.storage.k8s.io "{name}" not found'
            self._events.event(PVC, claim, "Warning", "ProvisioningFailed", message)
            return 15.0
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")
        if found["volumeBindingMode"] == "WaitForFirstConsumer" and not node:
            message = "waiting for first consumer to be created before binding"
            self._events.event(PVC, claim, "Normal", "WaitForFirstConsumer", message)
            return 15.0
        if found["provisioner"] != PROVISIONER:
            message = (
                "Waiting for a volume to be created either by the external provisioner"
                f" '{found['provisioner']}' or manually by the system administrator. If volume creation is delayed,"
                " please verify that the provisioner is running and correctly registered."
            )
            self._events.event(PVC, claim, "Normal", "ExternalProvisioning", message)
            return 15.0
        self._provision(claim, found, node)
        return None

    def _fitting(self, claim: Obj) -> Obj | None:
        """A volume that waits for this claim, is named by it, or is free and large enough."""
        spec, meta = claim["spec"], claim["metadata"]
        if wanted := spec.get("volumeName"):
            return self.api.store.get(PV, "", wanted)
        size = milli(spec["resources"]["requests"]["storage"])
        for volume in self.api.store.all(PV):
            ref = volume["spec"].get("claimRef")
            if ref and (ref["namespace"], ref["name"]) == (meta["namespace"], meta["name"]):
                if ref.get("uid") in (None, "", meta["uid"]):
                    return volume
            elif (
                not ref
                and volume["spec"].get("storageClassName", "") == spec.get("storageClassName", "")
                and milli(volume["spec"]["capacity"]["storage"]) >= size
                and set(spec["accessModes"]) <= set(volume["spec"]["accessModes"])
            ):
                return volume
        return None

    def _provision(self, claim: Obj, found: Obj, node: str) -> None:
        meta, spec = claim["metadata"], claim["spec"]
        message = (
            f'External provisioner is provisioning volume for claim "{meta["namespace"]}/{meta["name"]}"'
        )
        self._provisioner.event(PVC, claim, "Normal", "Provisioning", message)
        name = f"pvc-{meta['uid']}"
        body: Obj = {
            "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}}
        }
        body["spec"] = {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "storageClassName": found["metadata"]["name"],
            "persistentVolumeReclaimPolicy": found["reclaimPolicy"],
            "csi": {"driver": PROVISIONER, "volumeHandle": name},
            "claimRef": _claim_ref(claim),
        }
        if node and found["volumeBindingMode"] == "WaitForFirstConsumer":
            here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
            body["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
        volume = self.api.create(PV, "", body, Writer(PROVISIONER))
        message = f"Successfully provisioned volume {name}"
        self._provisioner.event(PVC, claim, "Normal", "ProvisioningSucceeded", message)
        self._join(claim, volume, provisioned=True)

    def _join(self, claim: Obj, volume: Obj, provisioned: bool = False) -> None:
        ref = volume["spec"].get("claimRef") or {}
        if ref.get("uid") not in (None, "", claim["metadata"]["uid"]):
            return
        if ref.get("uid") != claim["metadata"]["uid"]:
            joined = {"claimRef": _claim_ref(claim)}
            name = volume["metadata"]["name"]
            volume = self.api.update(
                PV, "", name, lambda o: o | {"spec": o["spec"] | joined}, Writer(CONTROLLER)
            )
        self._phase(volume, "Bound")

        def bind(obj: Obj) -> Obj:
            annotations = obj["metadata"].setdefault("annotations", {})
            annotations["pv.kubernetes.io/bind-completed"] = "yes"
            if "volumeName" not in obj["spec"]:
                annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
            if provisioned:
                annotations["volume.kubernetes.io/storage-provisioner"] = PROVISIONER
            obj["spec"]["volumeName"] = volume["metadata"]["name"]
            return obj

        meta = claim["metadata"]
        bound = self.api.update(PVC, meta["namespace"], meta["name"], bind, Writer(CONTROLLER))
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": volume["spec"]["capacity"],
        }
        self.api.set_status(PVC, bound, status)

    def _expand(self, claim: Obj, size: str) -> float | None:
        volume = self.api.store.get(PV, "", claim["spec"].get("volumeName", ""))
        if volume is None or (volume["spec"].get("csi") or {}).get("driver") != PROVISIONER:
            return None
        name = volume["metadata"]["name"]
        grown = {"capacity": {"storage": size}}
        if not self._grow(name, size):
            self._wait_for_restart(claim)
            return GROWTH_SECONDS
        self.api.update(PV, "", name, lambda o: o | {"spec": o["spec"] | grown}, Writer(PROVISIONER))
        status = {k: v for k, v in claim["status"].items() if k != "conditions"}
        self.api.set_status(PVC, claim, status | grown)
        message = "MountVolume.NodeExpandVolume succeeded for volume " + f'"{name}"'
        self._provisioner.event(PVC, claim, "Normal", "FileSystemResizeSuccessful", message)
        return None

    def _wait_for_restart(self, claim: Obj) -> None:
        message = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
        if claim["status"].get("conditions"):
            return
        pending: Obj = {"type": "FileSystemResizePending", "status": "True", "message": message}
        pending |= {"lastProbeTime": None, "lastTransitionTime": now()}
        self.api.set_status(PVC, claim, claim["status"] | {"conditions": [pending]})
        self._provisioner.event(PVC, claim, "Normal", "FileSystemResizeRequired", message)

    def _phase(self, volume: Obj, phase: str) -> None:
        status = volume.get("status") or {}
        if status.get("phase") != phase:
            self.api.set_status(PV, volume, status | {"phase": phase, "lastPhaseTransitionTime": now()})

    def _volume(self, volume: Obj) -> float | None:
        ref = volume["spec"].get("claimRef")
        bound = bool(ref) and self._claim_of(ref) is not None
        if "deletionTimestamp" in volume["metadata"]:
            if not bound:
                self._release(PV, volume, "kubernetes.io/pv-protection")
            return None
        if not ref:
            self._phase(volume, "Available")
        elif not bound and ref.get("uid"):
            self._phase(volume, "Released")
            ours = (volume["spec"].get("csi") or {}).get("driver") == PROVISIONER
            if ours and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
                self._discard(volume["metadata"]["name"])
                self.api.try_delete(PV, volume)
        elif not ref.get("uid"):
            self._phase(volume, "Available")
        return None

    def _claim_of(self, ref: Obj) -> Obj | None:
        claim = self.api.store.get(PVC, ref["namespace"], ref["name"])
        if claim is None or ref.get("uid") not in (None, "", claim["metadata"]["uid"]):
            return None
        return claim


def _claim_ref(claim: Obj) -> Obj:
    meta = claim["metadata"]
    ref = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": meta["namespace"],
        "name": meta["name"],
    }
    return ref | {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}


def claims_of(pod: Obj) -> list[str]:
    volumes = pod["spec"].get("volumes", [])
    return [v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v]


def _ended(pod: Obj) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
