"""Object metadata: defaults of a new object, and members that a change may not touch."""

import random
import uuid

from devcluster.errors import bad_request, forbidden_field, invalid, invalid_value, modified
from devcluster.resources import Kind, Obj
from devcluster.store import clone
from devcluster.values.clock import now

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_SERVERS = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
    "resourceVersion",
)


def same_namespace(meta: Obj, namespace: str) -> None:
    if meta.get("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def new(namespace: str, given: Obj) -> Obj:
    same_namespace(given, namespace)
    if given.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    dropped = (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
        "resourceVersion",
    )
    meta = {k: v for k, v in given.items() if k not in dropped and v not in (None, {}, [])}
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"] + "".join(random.choices(_SUFFIX, k=5))
    if namespace:
        meta["namespace"] = namespace
    return meta | {"uid": str(uuid.uuid4()), "creationTimestamp": now()}


def settle(kind: Kind, old: Obj, new: Obj, subresource: str) -> Obj:
    """Return the change, with the old values of all parts that this request may not touch."""
    meta, had = new.setdefault("metadata", {}), old["metadata"]
    if meta.get("resourceVersion") not in (None, "", had["resourceVersion"]):
        raise modified(kind, had["name"])
    if meta.get("uid") not in (None, "", had["uid"]):
        fault = invalid_value("metadata.uid", meta["uid"], "field is immutable")
        raise invalid(kind, had["name"], [fault, fault])
    if subresource == "status":
        kept = clone({k: v for k, v in old.items() if k != "status"})
        if "managedFields" in meta:
            kept["metadata"]["managedFields"] = meta["managedFields"]
        if annotations := meta.get("annotations"):  # a change of the status may change annotations too
            kept["metadata"]["annotations"] = annotations
        return dict(kept) | ({"status": new["status"]} if "status" in new else {})
    new = {k: v for k, v in new.items() if k not in ("kind", "apiVersion")}
    if "status" in kind.subresources and subresource != "binding":
        new.pop("status", None)
        if "status" in old:
            new["status"] = clone(old["status"])
    fixed = {k: had[k] for k in _SERVERS if k in had}
    free = {k: v for k, v in meta.items() if k not in _SERVERS and v not in (None, {}, [])}
    new["metadata"] = fixed | free
    if "deletionTimestamp" in had:
        _no_new_finalizers(kind, free, had)
    return new


def _no_new_finalizers(kind: Kind, meta: Obj, had: Obj) -> None:
    added = [f for f in meta.get("finalizers", []) if f not in had.get("finalizers", [])]
    if added:
        quoted = ", ".join(f'"{f}"' for f in added)
        why = "no new finalizers can be added if the object is being deleted, found new finalizers"
        fault = forbidden_field("metadata.finalizers", f"{why} []string{{{quoted}}}")
        raise invalid(kind, had["name"], [fault])
