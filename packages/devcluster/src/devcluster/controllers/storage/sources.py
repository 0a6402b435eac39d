"""Source of a new volume's contents: another claim's volume or a snapshot, by the claim's data source.

A driver that cannot copy, and a source that is missing or does not fit, are refused in the words of the CSI
provisioner.
"""

from devcluster.api import Api
from devcluster.resources import PV, PVC, SNAPSHOT, SNAPSHOT_CONTENT, Obj
from devcluster.storage import Driver, driver_of, handle_of, requested, size_of
from devcluster.values.quantity import whole


class Unusable(Exception):
    """Refusal of a source; the message gives the reason."""


def source_of(claim: Obj) -> Obj:
    found: Obj = claim["spec"].get("dataSourceRef") or claim["spec"].get("dataSource") or {}
    return found


def is_ours(source: Obj) -> bool:
    """Return True for claims and snapshots; a volume populator handles any other kind."""
    kind = source.get("apiGroup") or "", source["kind"]
    return kind in ((PVC.group, PVC.kind), (SNAPSHOT.group, SNAPSHOT.kind))


def source_handle(api: Api, claim: Obj, source: Obj, driver: Driver) -> str:
    snapshot = source["kind"] == SNAPSHOT.kind
    if not driver.copies:
        wish, lacks = (
            ("snapshot restore", "CREATE_DELETE_SNAPSHOT")
            if snapshot
            else ("clone operations", "CLONE_VOLUME")
        )
        raise Unusable(f"CSI driver does not support {wish}: controller {lacks} capability is not reported")
    try:
        return (
            _snapshot(api, claim, source["name"], driver)
            if snapshot
            else _volume(api, claim, source["name"], driver)
        )
    except Unusable as error:
        head = f"error getting handle for DataSource Type {source['kind']} by Name {source['name']}"
        raise Unusable(f"{head}: {error}") from None


def _volume(api: Api, claim: Obj, name: str, driver: Driver) -> str:
    namespace = claim["metadata"]["namespace"]
    source = api.store.get(PVC, namespace, name)
    if source is None:
        why = f'persistentvolumeclaims "{name}" not found'
        raise Unusable(f'error getting PVC {name} (namespace "{namespace}") from api server: {why}')
    if source["status"].get("phase") != "Bound":
        raise Unusable(
            f"the PVC DataSource {name} must have a status of Bound.  Got {source['status'].get('phase')}"
        )
    if "deletionTimestamp" in source["metadata"]:
        raise Unusable(f"the PVC DataSource {name} is currently being deleted")
    volume = api.store.get(PV, "", source["spec"]["volumeName"])
    if volume is None or driver_of(volume) is not driver:
        raise Unusable("claim in dataSource not bound or invalid")
    asked, size = whole(requested(claim)), whole(size_of(volume))
    if asked < size:
        raise Unusable(
            "error, new PVC request must be greater than or equal in size to the specified PVC data source,"
            f" requested {asked} but source is {size}"
        )
    return handle_of(volume)


def _snapshot(api: Api, claim: Obj, name: str, driver: Driver) -> str:
    snapshot = api.store.get(SNAPSHOT, claim["metadata"]["namespace"], name)
    if snapshot is None:
        why = f'volumesnapshots.snapshot.storage.k8s.io "{name}" not found'
        raise Unusable(f"error getting snapshot {name} from api server: {why}")
    if "deletionTimestamp" in snapshot["metadata"]:
        raise Unusable(f"snapshot {name} is being deleted")
    status = snapshot.get("status") or {}
    bound_to = status.get("boundVolumeSnapshotContentName")
    if not bound_to:
        raise Unusable(f"snapshot {name} not bound")
    content = api.store.get(SNAPSHOT_CONTENT, "", bound_to)
    if content is None:
        raise Unusable(f"error getting snapshotcontent {bound_to} for snapshot {name}")
    if content["spec"]["driver"] != driver.name:
        raise Unusable(
            f"snapshotcontent {bound_to} for snapshot {name} is bound to a different driver than the storage class"
        )
    if not status.get("readyToUse"):
        raise Unusable(f"snapshot {name} is not Ready")
    asked, size = whole(requested(claim)), whole(status["restoreSize"])
    if asked < size:
        raise Unusable(
            f"requested volume size {asked} is less than the size {size} for the source snapshot {name}"
        )
    return str(content["status"]["snapshotHandle"])
