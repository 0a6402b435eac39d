"""Claims and volumes: binding, protection, and the fate of a volume after its claim."""

from collections.abc import Iterable

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.controllers.storage.binding import best_match, bound_to, mismatch
from devcluster.events import Recorder, reference
from devcluster.resources import POD, PV, PVC, STORAGE_CLASS, Kind, Obj
from devcluster.rules.admission import DEFAULT_CLASS
from devcluster.storage import FIRST_USE, SELECTED_NODE, claims_of, without
from devcluster.store import Change
from devcluster.values.clock import now

RESYNC_SECONDS = 15.0
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONERS = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
LOST = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"
NO_VOLUME = "no persistent volumes available for this claim and no storage class is set"
Key = tuple[Kind, str, str]


class VolumeController(Controller[Key]):
    def __init__(self, api: Api):
        super().__init__(api)
        self._events = Recorder(api, "persistentvolume-controller")
        self._unbound: set[tuple[str, str]] = set()
        """Claims that look for a volume."""
        self._open: set[str] = set()
        """Volumes that a claim may still get: in no claim's hand, or not finished being handed over."""

    def keys(self, change: Change) -> Iterable[Key]:
        meta = change.obj["metadata"]
        if change.kind is PVC:
            yield PVC, meta["namespace"], meta["name"]
            self._note_claim(change)
            if volume := change.obj["spec"].get("volumeName"):
                yield PV, "", volume
        elif change.kind is PV:
            yield PV, "", meta["name"]
            yield from self._note_volume(change)
        elif change.kind is POD and change.type == "DELETED":
            for claim in claims_of(change.obj):
                yield PVC, meta["namespace"], claim

    def _note_claim(self, change: Change) -> None:
        meta = change.obj["metadata"]
        key = meta["namespace"], meta["name"]
        if change.type == "DELETED" or BIND_COMPLETED in (meta.get("annotations") or {}):
            self._unbound.discard(key)
        else:
            self._unbound.add(key)

    def _note_volume(self, change: Change) -> Iterable[Key]:
        """Yield the claim that the volume names; all waiting claims once the volume is free."""
        volume, name = change.obj, change.obj["metadata"]["name"]
        if change.type == "DELETED" or _phase(volume) == "Bound":
            self._open.discard(name)
        else:
            self._open.add(name)
        if ref := volume["spec"].get("claimRef"):
            yield PVC, ref["namespace"], ref["name"]
        elif _phase(volume) == "Available":
            yield from ((PVC, *claim) for claim in self._unbound)

    async def reconcile(self, key: Key) -> float | None:
        kind, namespace, name = key
        obj = self.api.store.get(kind, namespace, name)
        if obj is None:
            return None
        if kind is PV:
            self._volume(obj)
            return None
        return self._claim(obj)

    # --- Claims

    def _claim(self, claim: Obj) -> float | None:
        if "deletionTimestamp" in claim["metadata"]:
            if not self._in_use(claim):
                self._unprotect(PVC, claim, "kubernetes.io/pvc-protection")
            return None
        if BIND_COMPLETED in (claim["metadata"].get("annotations") or {}):
            self._keep_bound(claim)
            return None
        if claim["spec"].get("volumeName"):
            self._bind_named(claim)
        else:
            self._find(claim)
        return RESYNC_SECONDS

    def _in_use(self, claim: Obj) -> bool:
        """Return True if a pod with a node names the claim, even if that pod no longer runs."""
        meta = claim["metadata"]
        pods = self.api.store.each(POD, meta["namespace"])
        return any(p["spec"].get("nodeName") and meta["name"] in claims_of(p) for p in pods)

    def _keep_bound(self, claim: Obj) -> None:
        volume = self.api.store.get(PV, "", claim["spec"].get("volumeName", ""))
        if volume is None:
            self._lose(claim, "ClaimLost", LOST)
        elif not volume["spec"].get("claimRef") or bound_to(volume, claim):
            self._bind(claim, volume)
        else:
            self._lose(claim, "ClaimMisbound", MISBOUND)

    def _lose(self, claim: Obj, reason: str, message: str) -> None:
        if claim["status"].get("phase") != "Lost":
            self.api.set_status(PVC, claim, {"phase": "Lost"})
            self._events.event(PVC, claim, "Warning", reason, message)

    def _bind_named(self, claim: Obj) -> None:
        """Bind the claim to the one volume that it names."""
        volume = self.api.store.get(PV, "", claim["spec"]["volumeName"])
        if volume is None:
            return
        name = volume["metadata"]["name"]
        if bound_to(volume, claim):
            self._bind(claim, volume)
        elif volume["spec"].get("claimRef"):
            message = f'volume "{name}" already bound to a different claim.'
            self._events.event(PVC, claim, "Warning", "FailedBinding", message)
        elif why := mismatch(volume, claim):
            message = f'Cannot bind to requested volume "{name}": {why}'
            self._events.event(PVC, claim, "Warning", "VolumeMismatch", message)
        else:
            self._bind(claim, volume)

    def _find(self, claim: Obj) -> None:
        """Bind the claim to a volume that exists, or have one made."""
        name = claim["spec"].get("storageClassName")
        found = self.api.store.get(STORAGE_CLASS, "", name or "")
        delayed = found is not None and found["volumeBindingMode"] == FIRST_USE
        volumes = (self.api.store.get(PV, "", v) for v in sorted(self._open))
        if volume := best_match(claim, filter(None, volumes), delayed=delayed):
            self._bind(claim, volume)
        elif name is None and (default := self._default_class()):
            self._annotate(claim, {}, storageClassName=default)
        elif delayed and SELECTED_NODE not in (claim["metadata"].get("annotations") or {}):
            self._tell_waiting(claim)
        elif not name:
            self._events.event(PVC, claim, "Normal", "FailedBinding", NO_VOLUME)
        else:
            self._have_made(claim, found)

    def _default_class(self) -> str:
        for found in self.api.store.all(STORAGE_CLASS):
            if (found["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true":
                return str(found["metadata"]["name"])
        return ""

    def _tell_waiting(self, claim: Obj) -> None:
        meta = claim["metadata"]
        pods = [
            p["metadata"]["name"]
            for p in self.api.store.all(POD, meta["namespace"])
            if not p["spec"].get("nodeName") and meta["name"] in claims_of(p)
        ]
        reason, message = (
            "WaitForPodScheduled",
            f"waiting for pod{'s' * (len(pods) > 1)} {','.join(pods)} to be scheduled",
        )
        if not pods:
            reason, message = FIRST_USE, "waiting for first consumer to be created before binding"
        self._events.event(PVC, claim, "Normal", reason, message)

    def _have_made(self, claim: Obj, storage_class: Obj | None) -> None:
        """Name the provisioner that must make the volume."""
        if storage_class is None:
            why = f'storageclass.storage.k8s.io "{claim["spec"]["storageClassName"]}" not found'
        elif storage_class["provisioner"].startswith("kubernetes.io/"):
            why = f"no volume plugin matched name: {storage_class['provisioner']}"
        else:
            name = storage_class["provisioner"]
            claim = self._annotate(claim, dict.fromkeys(PROVISIONERS, str(name)))
            message = (
                f"Waiting for a volume to be created either by the external provisioner '{name}' or manually by the"
                " system administrator. If volume creation is delayed, please verify that the provisioner is running"
                " and correctly registered."
            )
            self._events.event(PVC, claim, "Normal", "ExternalProvisioning", message)
            return
        self._events.event(PVC, claim, "Warning", "ProvisioningFailed", why)

    def _annotate(self, claim: Obj, annotations: dict[str, str], **spec: str) -> Obj:
        def change(obj: Obj) -> Obj:
            if annotations:
                obj["metadata"].setdefault("annotations", {}).update(annotations)
            obj["spec"].update(spec)
            return obj

        meta = claim["metadata"]
        return self.api.update(PVC, meta["namespace"], meta["name"], change, Writer(CONTROLLER))

    def _bind(self, claim: Obj, volume: Obj) -> None:
        """Write the binding on both sides, the volume's first; skip a side that has it."""
        volume = self._claim_volume(claim, volume)
        self._set_phase(volume, "Bound")
        annotations = {BIND_COMPLETED: "yes"}
        if claim["spec"].get("volumeName") != volume["metadata"]["name"]:
            annotations[BOUND_BY_CONTROLLER] = "yes"
        claim = self._annotate(claim, annotations, volumeName=volume["metadata"]["name"])
        status = claim["status"]
        bound: Obj = {"phase": "Bound", "accessModes": volume["spec"]["accessModes"]}
        if status.get("phase") != "Bound":
            bound["capacity"] = volume["spec"]["capacity"]
        self.api.set_status(PVC, claim, {**status, **bound})

    def _claim_volume(self, claim: Obj, volume: Obj) -> Obj:
        if (volume["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"]:
            return volume
        kept = bound_to(volume, claim)

        def change(obj: Obj) -> Obj:
            obj["spec"]["claimRef"] = reference(PVC, claim)
            if not kept:
                obj["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
            return obj

        return self.api.update(PV, "", volume["metadata"]["name"], change, Writer(CONTROLLER))

    # --- Volumes

    def _volume(self, volume: Obj) -> None:
        ref = volume["spec"].get("claimRef")
        if not ref or not ref.get("uid"):
            self._set_phase(volume, "Available")
        else:
            claim = self.api.store.get(PVC, ref["namespace"], ref["name"])
            if claim is None or claim["metadata"]["uid"] != ref["uid"]:
                self._let_go(volume)
            elif claim["spec"].get("volumeName") == volume["metadata"]["name"]:
                self._set_phase(volume, "Bound")
            elif claim["spec"].get("volumeName"):
                self._take_back(volume)
        self._unprotect_volume(volume["metadata"]["name"])

    def _let_go(self, volume: Obj) -> None:
        """Set a volume without its claim to Released. If the policy is Delete, the driver deletes its own volume."""
        if _phase(volume) not in ("Released", "Failed"):
            self._set_phase(volume, "Released")

    def _take_back(self, volume: Obj) -> None:
        """Free a volume whose claim is bound to another volume."""
        meta, spec = volume["metadata"], volume["spec"]
        annotations = meta.get("annotations") or {}
        if PROVISIONED_BY in annotations and spec["persistentVolumeReclaimPolicy"] == "Delete":
            self._let_go(volume)
            return

        def change(obj: Obj) -> Obj:
            if BOUND_BY_CONTROLLER in annotations:
                del obj["spec"]["claimRef"], obj["metadata"]["annotations"][BOUND_BY_CONTROLLER]
            else:
                del obj["spec"]["claimRef"]["uid"]
            return obj

        self._set_phase(self.api.update(PV, "", meta["name"], change, Writer(CONTROLLER)), "Available")

    def _set_phase(self, volume: Obj, phase: str) -> None:
        status = volume.get("status") or {}
        if status.get("phase") != phase:
            self.api.set_status(PV, volume, status | {"phase": phase, "lastPhaseTransitionTime": now()})

    def _unprotect_volume(self, name: str) -> None:
        volume = self.api.store.get(PV, "", name)
        if volume and "deletionTimestamp" in volume["metadata"] and _phase(volume) != "Bound":
            self._unprotect(PV, volume, "kubernetes.io/pv-protection")

    def _unprotect(self, kind: Kind, obj: Obj, finalizer: str) -> None:
        def change(o: Obj) -> Obj:
            o["metadata"]["finalizers"] = without(o["metadata"].get("finalizers", []), finalizer)
            return o

        meta = obj["metadata"]
        self.api.update(kind, meta.get("namespace", ""), meta["name"], change, Writer(CONTROLLER))


def _phase(volume: Obj) -> str:
    return str((volume.get("status") or {}).get("phase", ""))
