"""Attachment of volumes to the nodes of their pods, and detachment after the last pod; mostly one node at a time.

A volume stays attached to a node that does not answer: until a while has passed, or until an admin states by the taint
`node.kubernetes.io/out-of-service` that the node is off.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterable

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.events import Recorder
from devcluster.faults.volumefaults import MULTI_ATTACH, RETRY_SECONDS, HeldBack, VolumeFaults
from devcluster.nodes import is_ready
from devcluster.resources import NODE, POD, PV, PVC, VOLUME_ATTACHMENT, Obj
from devcluster.storage import Driver, claims_of, driver_of, ended, exclusive, handle_of
from devcluster.store import Change
from devcluster.values.clock import now

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
Claim = tuple[str, str]


class AttachmentController(Controller[str]):
    """Controller of VolumeAttachments, with names of volumes as keys."""

    def __init__(self, api: Api, faults: VolumeFaults, lost_node_seconds: float):
        super().__init__(api)
        self._faults, self._lost_node_seconds = faults, lost_node_seconds
        self._events = Recorder(api, "attachdetach-controller")
        self._pods: defaultdict[Claim, dict[str, str]] = defaultdict(dict)
        """Claim → name → node of the pods that hold it on a node."""
        self._attached: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """Volume → node → name of the VolumeAttachment."""
        self._refused: set[tuple[str, str]] = set()
        """Volume and node of which a Multi-Attach error was told."""
        self._given_up: dict[str, float] = {}
        """Since when a lost node was to let go of something, by VolumeAttachment."""

    def keys(self, change: Change) -> Iterable[str]:
        meta = change.obj["metadata"]
        if change.kind is POD:
            yield from self._note_pod(change)
        elif change.kind is PVC and (volume := change.obj["spec"].get("volumeName")):
            if (meta["namespace"], meta["name"]) in self._pods:
                yield volume
        elif change.kind is VOLUME_ATTACHMENT:
            spec = change.obj["spec"]
            volume = spec["source"].get("persistentVolumeName", "")
            if change.type == "DELETED":
                self._attached[volume].pop(spec["nodeName"], None)
                self._given_up.pop(meta["name"], None)
            else:
                self._attached[volume][spec["nodeName"]] = meta["name"]
            yield volume
        elif change.kind is NODE:
            yield from (v for v, nodes in self._attached.items() if meta["name"] in nodes)

    def _note_pod(self, change: Change) -> Iterable[str]:
        pod, meta = change.obj, change.obj["metadata"]
        node = pod["spec"].get("nodeName", "")
        holds = bool(node) and change.type != "DELETED" and not ended(pod)
        for name in claims_of(pod):
            key = meta["namespace"], name
            had = self._pods[key].get(meta["name"])
            if holds:
                self._pods[key][meta["name"]] = node
            else:
                self._pods[key].pop(meta["name"], None)
            if not self._pods[key]:
                del self._pods[key]
            if (had is not None) != holds:
                claim = self.api.store.get(PVC, *key)
                if claim and (volume := claim["spec"].get("volumeName")):
                    yield volume

    async def reconcile(self, key: str) -> float | None:
        volume = self.api.store.get(PV, "", key)
        claim = self._claim(volume) if volume else None
        wanted = self._wanted(claim) if claim else {}
        self._refused -= {(v, node) for v, node in self._refused if v == key and node not in wanted}
        waits = [
            self._let_go(attachment, claim)
            for node, name in self._attachments(key)
            if (attachment := self.api.get(VOLUME_ATTACHMENT, "", name))
            and (node not in wanted or _is_deleted(attachment))
        ]
        driver = driver_of(volume) if volume else None
        if volume and claim and driver and driver.attached:
            waits += [self._attach(volume, claim, driver, node, pods) for node, pods in wanted.items()]
        return min(filter(None, waits), default=None)

    def _claim(self, volume: Obj) -> Obj | None:
        ref = volume["spec"].get("claimRef") or {}
        claim = self.api.store.get(PVC, ref.get("namespace", ""), ref.get("name", ""))
        return claim if claim and claim["spec"].get("volumeName") == volume["metadata"]["name"] else None

    def _wanted(self, claim: Obj) -> dict[str, list[str]]:
        """Return the names of the pods that want the claim, by node."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        meta = claim["metadata"]
        for pod, node in self._pods.get((meta["namespace"], meta["name"]), {}).items():
            found[node].append(pod)
        return found

    def _attachments(self, volume: str) -> list[tuple[str, str]]:
        return list(self._attached.get(volume, {}).items())

    # --- Attaching

    def _attach(self, volume: Obj, claim: Obj, driver: Driver, node: str, pods: list[str]) -> float | None:
        name = volume["metadata"]["name"]
        others = [n for n, _ in self._attachments(name) if n != node]
        known = self._attached.get(name, {}).get(node)
        if known is None and others and exclusive(volume):
            self._refuse(volume, claim, node, pods)
            return None
        self._refused.discard((name, node))
        if known is None:
            self.api.create(VOLUME_ATTACHMENT, "", _attachment(volume, driver, node), Writer(CONTROLLER))
            return None  # the change of the attachment enqueues the volume again
        attachment = self.api.get(VOLUME_ATTACHMENT, "", known)
        if is_attached(attachment) or _is_deleted(attachment):
            return None
        return self._finish_attaching(attachment, volume, claim, pods)

    def _finish_attaching(self, attachment: Obj, volume: Obj, claim: Obj, pods: list[str]) -> float | None:
        name, driver = volume["metadata"]["name"], attachment["spec"]["attacher"]
        try:
            self._faults.bear("attach", claim, attachment["spec"]["nodeName"])
        except HeldBack as held:
            if held.error.startswith(MULTI_ATTACH):  # a message of the control plane itself, not of a driver
                self._tell(claim, pods, "Warning", "FailedAttachVolume", held.error)
            elif held.error:
                self._set_error(attachment, "attachError", held.error)
                message = f'AttachVolume.Attach failed for volume "{name}" : {held.error}'
                self._tell(claim, pods, "Warning", "FailedAttachVolume", message)
            return RETRY_SECONDS
        self.api.set_status(VOLUME_ATTACHMENT, attachment, {"attached": True}, driver)
        message = f'AttachVolume.Attach succeeded for volume "{name}" '
        self._tell(claim, pods, "Normal", "SuccessfulAttachVolume", message)
        return None

    def _refuse(self, volume: Obj, claim: Obj, node: str, pods: list[str]) -> None:
        """Report a Multi-Attach error once per node: the volume may be on one node only and is on another."""
        name = volume["metadata"]["name"]
        if (name, node) in self._refused:
            return
        self._refused.add((name, node))
        users = [pod for at, found in self._wanted(claim).items() if at != node for pod in found]
        why = "Volume is already exclusively attached to one node and can't be attached to another"
        if users:
            why = f"Volume is already used by pod(s) {', '.join(users)}"
        message = f'{MULTI_ATTACH} for volume "{name}" {why}'
        self._tell(claim, pods, "Warning", "FailedAttachVolume", message)

    def _tell(self, claim: Obj, pods: list[str], level: str, reason: str, message: str) -> None:
        for name in pods:
            if pod := self.api.store.get(POD, claim["metadata"]["namespace"], name):
                self._events.event(POD, pod, level, reason, message)

    # --- detaching

    def _let_go(self, attachment: Obj, claim: Obj | None) -> float | None:
        name, node = attachment["metadata"]["name"], attachment["spec"]["nodeName"]
        if claim and self._faults.matches("held", claim, node):
            return RETRY_SECONDS
        if not _is_deleted(attachment):
            if left := self._mounted_seconds(name, node):
                return left
            self.api.try_delete(VOLUME_ATTACHMENT, attachment)
            return None  # the deletion enqueues the volume again
        try:
            if claim:
                self._faults.bear("detach", claim, node)
        except HeldBack as held:
            if held.error:
                self._set_error(attachment, "detachError", held.error)
            return RETRY_SECONDS

        def change(obj: Obj) -> Obj:
            obj["metadata"]["finalizers"] = []
            return obj

        self.api.update(VOLUME_ATTACHMENT, "", name, change, Writer(attachment["spec"]["attacher"]))
        return None

    def _mounted_seconds(self, attachment: str, node: str) -> float:
        """Return for how many more seconds the node must be assumed to have the volume mounted."""
        found = self.api.store.get(NODE, "", node)
        taints = (found["spec"].get("taints") or []) if found else []
        if is_ready(self.api, node) or any(t["key"] == OUT_OF_SERVICE for t in taints):
            return 0.0
        since = self._given_up.setdefault(attachment, time.monotonic())
        return max(since + self._lost_node_seconds - time.monotonic(), 0.0)

    def _set_error(self, attachment: Obj, member: str, why: str) -> None:
        status = attachment.get("status") or {"attached": False}
        if status.get(member, {}).get("message") == why:
            return
        told = {member: {"time": now(), "message": why}}
        self.api.set_status(VOLUME_ATTACHMENT, attachment, status | told, attachment["spec"]["attacher"])


def is_attached(attachment: Obj) -> bool:
    return bool(attachment.get("status", {}).get("attached")) and not _is_deleted(attachment)


def _is_deleted(attachment: Obj) -> bool:
    return "deletionTimestamp" in attachment["metadata"]


def attachment_name(volume: Obj, driver: Driver, node: str) -> str:
    digest = hashlib.sha256(f"{handle_of(volume)}{driver.name}{node}".encode()).hexdigest()
    return f"csi-{digest}"


def _attachment(volume: Obj, driver: Driver, node: str) -> Obj:
    finalizer = f"external-attacher/{driver.external_name}"
    source = {"persistentVolumeName": volume["metadata"]["name"]}
    return {
        "metadata": {"name": attachment_name(volume, driver, node), "finalizers": [finalizer]},
        "spec": {"attacher": driver.name, "nodeName": node, "source": source},
    }
