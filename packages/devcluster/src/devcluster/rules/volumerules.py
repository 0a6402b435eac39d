"""Validation of volumes, claims and snapshots, in the API server's words."""

from collections.abc import Iterator

from devcluster.errors import Cause, forbidden_field, invalid_value, not_supported, required
from devcluster.resources import Obj
from devcluster.rules import volumepaths
from devcluster.values.quantity import milli

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
SOURCES = (
    *(
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "csi",
        "fc",
        "flexVolume",
        "flocker",
    ),
    *("gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk"),
    *("portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume"),
)


def claim(obj: Obj) -> Iterator[Cause]:
    spec = obj["spec"]
    modes = spec.get("accessModes") or []
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from _access_modes(modes)
    size = (spec.get("resources") or {}).get("requests", {}).get("storage")
    if size is None:
        yield required("spec.resources[storage]")
    elif milli(size) <= 0:
        yield invalid_value("spec.resources[storage]", size, "must be greater than zero")
    yield from _volume_mode(spec)
    for member in ("dataSource", "dataSourceRef"):
        yield from _data_source(f"spec.{member}", spec.get(member))
    if spec.get("dataSource") and spec["dataSource"] != spec.get("dataSourceRef"):
        yield invalid_value("spec", {}, "must match dataSourceRef")


def volume(obj: Obj) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _access_modes(spec.get("accessModes") or [])
    size = (spec.get("capacity") or {}).get("storage")
    if size is None:
        yield required("spec.capacity")
        yield not_supported("spec.capacity", None, ("storage",))
    elif milli(size) <= 0:
        yield invalid_value("spec.capacity[storage]", size, "must be greater than zero")
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy not in ("Delete", "Recycle", "Retain"):
        yield not_supported("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain"))
    yield from _source(spec)
    yield from _volume_mode(spec)


def snapshot(obj: Obj) -> Iterator[Cause]:
    if "source" not in (obj.get("spec") or {}):
        yield required("spec.source")


def snapshot_content(obj: Obj) -> Iterator[Cause]:
    for member in ("deletionPolicy", "driver", "source", "volumeSnapshotRef"):
        if member not in (obj.get("spec") or {}):
            yield required(f"spec.{member}")


def snapshot_class(obj: Obj) -> Iterator[Cause]:
    for member in ("deletionPolicy", "driver"):
        if member not in obj:
            yield required(member)


def _access_modes(modes: list[str]) -> Iterator[Cause]:
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield not_supported("spec.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield forbidden_field("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _volume_mode(spec: Obj) -> Iterator[Cause]:
    if spec.get("volumeMode", "Filesystem") not in ("Block", "Filesystem"):
        yield not_supported("spec.volumeMode", spec["volumeMode"], ("Block", "Filesystem"))


def _data_source(path: str, source: Obj | None) -> Iterator[Cause]:
    if not source:
        return
    if not source.get("name"):
        yield required(f"{path}.name")
    if not source.get("kind"):
        yield required(f"{path}.kind")
    elif not source.get("apiGroup") and source["kind"] != "PersistentVolumeClaim":
        why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid_value(path, source["kind"], why)


def _source(spec: Obj) -> Iterator[Cause]:
    given = [name for name in SOURCES if spec.get(name) is not None]
    if not given:
        yield required("spec", "must specify a volume type")
    for name in given[1:]:
        yield forbidden_field(f"spec.{name}", "may not specify more than 1 volume type")
    for member in ("driver", "volumeHandle"):
        if "csi" in given and not spec["csi"].get(member):
            yield required(f"spec.csi.{member}")
    if "hostPath" in given:
        yield from volumepaths.of_node(spec["hostPath"], "spec.hostPath")
        if spec["hostPath"].get("path") == "/" and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            why = "may not be 'recycle' for a hostPath mount of '/'"
            yield forbidden_field("spec.persistentVolumeReclaimPolicy", why)
