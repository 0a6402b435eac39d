"""Take over a volume that somebody else had made, without a risk for its data.

It is kept (Retain) and mounted read-only by its own mount options until its owner has confirmed what is in it: drivers
format nothing that they mount with the option `ro`, whoever mounts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from clusters import labels
from clusters.mirror import Mirror
from clusters.pods.ends import terminal
from clusters.storage import volumes
from storage.models import Access, Volume

from . import manifests
from .reading import in_mib

Object = Mapping[str, Any]
CLAIM, PERSISTENT = "PersistentVolumeClaim", "PersistentVolume"
OPTION = "ro"
OPTIONS, ANNOTATIONS = "/spec/mountOptions", "/metadata/annotations"
# On a persistent volume that got the option `ro` by Berth.
MARK = "berth.dev/read-only-until-confirmed"


class Blocked(Exception):
    """Reason why storage cannot be adopted as it is: a code and its data."""

    def __init__(self, code: str, **data: str) -> None:
        super().__init__(code)
        self.code, self.data = code, data


@dataclass(frozen=True)
class Taken:
    """The persistent volume behind an adopted volume."""

    body: Object

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def storage_class(self) -> str:
        return str(self.body["spec"].get("storageClassName", ""))

    @property
    def size_mib(self) -> int:
        return in_mib(self.body["spec"].get("capacity", {}).get("storage"))

    @property
    def access(self) -> Access:
        """The most that it offers."""
        offered = {manifests.ACCESS_OF[one] for one in self.body["spec"].get("accessModes", ())}
        order = (Access.MANY, Access.NODE, Access.POD, Access.READ)
        return next((one for one in order if one in offered), Access.READ)


def take(volume: Volume, mirror: Mirror, instance: UUID) -> Taken | None:
    """Keep the foreign volume, let it be mounted read-only alone, and reserve it for this volume's PVC.

    Return None if somebody changed it meanwhile: look again. Raise Blocked if it cannot be adopted.
    """
    name = volume.bound_to or _behind_claim(volume, mirror, instance)
    there = mirror.api.get(PERSISTENT, None, name)
    if there is None or there["metadata"].get("deletionTimestamp"):
        raise Blocked("adopted_missing", name=name)
    if there["spec"].get("volumeMode") == "Block":
        raise Blocked("adopted_block", name=name)
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": there["metadata"]["resourceVersion"]},
        {"op": "add", "path": volumes.RECLAIM, "value": "Retain"},
        *_reserving(volume, there),
        *_read_only(there),
    ]
    if not volumes.patch_own(name, operations, mirror):
        return None
    return Taken(there)


def _behind_claim(volume: Volume, mirror: Mirror, instance: UUID) -> str:
    """Return the persistent volume behind the foreign PVC, which becomes this volume's."""
    namespace, name = volume.tenant.namespace, volume.object_name
    claim = mirror.api.get(CLAIM, namespace, name)
    if claim is None or claim["metadata"].get("deletionTimestamp"):
        raise Blocked("adopted_missing", name=name)
    owner = (claim["metadata"].get("labels") or {}).get(labels.VOLUME, str(volume.pk))
    if owner != str(volume.pk):
        raise Blocked("adopted_taken", name=name, by=owner)
    if (claim.get("status") or {}).get("phase") != "Bound":
        raise Blocked("adopted_unbound", name=name)
    for pod in mirror.all("Pod"):
        if pod["metadata"].get("namespace") == namespace and _mounts(pod, name):
            raise Blocked("adopted_in_use", name=name, by=pod["metadata"]["name"])
    volumes.restore_labels(claim, manifests.labels_of(volume, instance), mirror)
    return str(claim["spec"]["volumeName"])


def _mounts(pod: Object, claim: str) -> bool:
    if terminal(pod):
        return False
    sources = (one.get("persistentVolumeClaim") or {} for one in pod["spec"].get("volumes") or ())
    return any(source.get("claimName") == claim for source in sources)


def _reserving(volume: Volume, there: Object) -> list[dict[str, Any]]:
    """Reserve it for the volume's PVC. Raise Blocked if another PVC has it."""
    wanted = {"namespace": volume.tenant.namespace, "name": volume.object_name}
    reference = there["spec"].get("claimRef") or {}
    if {key: reference.get(key) for key in wanted} == wanted:
        return []
    if reference and (there.get("status") or {}).get("phase") != "Released":
        by = f"{reference.get('namespace')}/{reference.get('name')}"
        raise Blocked("adopted_taken", name=there["metadata"]["name"], by=by)
    body = {"apiVersion": "v1", "kind": CLAIM, **wanted}
    return [{"op": "add", "path": volumes.REFERENCE, "value": body}]


def _read_only(there: Object) -> list[dict[str, Any]]:
    """Add the mount option `ro`, and a mark by which it is taken away again. A hostPath takes no options."""
    options = there["spec"].get("mountOptions") or []
    if OPTION in options or "hostPath" in there["spec"]:
        return []
    marks = there["metadata"].get("annotations") or {}
    return [
        {"op": "add", "path": OPTIONS, "value": [*options, OPTION]},
        {"op": "add", "path": ANNOTATIONS, "value": marks | {MARK: "true"}},
    ]


def allow_writing(name: str, mirror: Mirror) -> bool:
    """Take the mount option `ro` away that Berth added. Return False if somebody changed the volume meanwhile."""
    there = mirror.api.get(PERSISTENT, None, name)
    if there is None:
        raise Blocked("volume_lost", volume=name)
    marks = dict(there["metadata"].get("annotations") or {})
    if not marks.pop(MARK, ""):
        return True
    options = [one for one in there["spec"].get("mountOptions") or [] if one != OPTION]
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": there["metadata"]["resourceVersion"]},
        {"op": "add", "path": OPTIONS, "value": options},
        {"op": "add", "path": ANNOTATIONS, "value": marks},
    ]
    return volumes.patch_own(name, operations, mirror)
