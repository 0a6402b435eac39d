"""Verbs of the API on objects, for every caller: an HTTP client, a controller or a kubelet.

A call is one step of the event loop, so nothing can change between its read and its write.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from devcluster.access import escalation, rbac
from devcluster.access.rbac import Ask, User
from devcluster.errors import (
    ApiError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    invalid_value,
    modified,
    not_found,
    precondition,
)
from devcluster.resources import JOB, NAMESPACE, POD, Kind, Obj
from devcluster.rules import admission, defaults, metadata, validation
from devcluster.rules.quota import Totals
from devcluster.store import Store, clone
from devcluster.typed import apply
from devcluster.values.clock import now
from devcluster.values.qos import first_status

CONTROLLER = "kube-controller-manager"


@dataclass(frozen=True)
class Writer:
    """Author and options of a write: the part of a request that is the same for every verb."""

    manager: str
    dry_run: bool = False
    subresource: str = ""
    user: User | None = None
    """None: the cluster itself."""


@dataclass(frozen=True)
class DeleteOptions:
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    propagation: str = ""
    dry_run: bool = False
    orphan: bool | None = field(default=None)


class Api:
    def __init__(self, store: Store):
        self.store = store
        self.totals = Totals(store)

    def get(self, kind: Kind, namespace: str, name: str) -> Obj:
        found = self.store.get(kind, namespace, name)
        if found is None:
            raise not_found(kind, name)
        return found

    def create(self, kind: Kind, namespace: str, body: Obj, writer: Writer) -> Obj:
        obj = clone({k: v for k, v in body.items() if k not in ("kind", "apiVersion")})
        meta = metadata.new(namespace, obj.setdefault("metadata", {}))
        obj["metadata"] = meta
        if "status" in kind.subresources and kind.kind != "Node":
            obj.pop("status", None)
        defaults.fill(kind, obj)
        if writer.manager and not meta.get("managedFields"):
            apply.track_update(kind, None, obj, writer.manager, writer.subresource)
        defaults.allocate(kind, obj)
        admission.admit_create(self.store, kind, obj)
        if kind is POD:
            obj["status"] = first_status(obj["spec"])
        if kind.generation:
            meta["generation"] = 1
        if meta.get("name") and self.store.get(kind, namespace, meta["name"]):
            raise already_exists(kind, meta["name"])
        validation.validate(kind, obj, None)
        escalation.check(self.store, kind, obj, None, writer.user)
        admission.admit_valid(self.store, self.totals, kind, obj)
        return obj if writer.dry_run else self.store.put(kind, obj)

    def update(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Callable[[Obj], Obj],
        writer: Writer,
        tracked: bool = True,
    ) -> Obj:
        """Store the result of `change` on a copy of the object; store nothing if the copy stays equal."""
        old = self.get(kind, namespace, name)
        new = change(clone(old))
        new = metadata.settle(kind, old, new, writer.subresource)
        defaults.fill(kind, new)
        validation.validate(kind, new, old)
        escalation.check(self.store, kind, new, old, writer.user)
        admission.admit_update(self.store, kind, new, old)
        if kind.generation and writer.subresource != "binding" and _spec(new) != _spec(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        known = _ownership(old, new) if tracked else old
        if new == old:
            return old
        if tracked:
            apply.track_update(kind, known, new, writer.manager, writer.subresource)
        if writer.dry_run:
            return new
        if _may_go(kind, new):
            return self._remove(kind, new)
        return self.store.put(kind, new)

    def replace(self, kind: Kind, namespace: str, name: str, body: Obj, writer: Writer) -> Obj:
        """Replace an object (PUT)."""
        meta = body.setdefault("metadata", {})
        metadata.same_namespace(meta, namespace)
        old = self.get(kind, namespace, name)
        if meta.get("uid") not in (None, "", old["metadata"]["uid"]):
            uids = f"UID in precondition: {meta['uid']}, UID in object meta: {old['metadata']['uid']}"
            raise conflict(kind, name, f"Precondition failed: {uids}")
        return self.update(kind, namespace, name, lambda _: clone(body), writer)

    def apply(
        self, kind: Kind, namespace: str, name: str, body: Obj, writer: Writer, force: bool
    ) -> tuple[Obj, bool]:
        """Do a server-side apply. Return the object, and True if it is new."""
        applied = clone({k: v for k, v in body.items() if k not in ("kind", "apiVersion")})
        meta = applied.setdefault("metadata", {})
        if meta.get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        metadata.same_namespace(meta, namespace)
        version, uid = meta.pop("resourceVersion", None), meta.get("uid")
        old = self.store.get(kind, namespace, name)
        if old is None:
            if uid:
                why = (
                    f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                )
                raise conflict(kind, name, why)
            return self._apply_new(kind, namespace, name, applied, writer), True
        if version not in (None, old["metadata"]["resourceVersion"]):
            raise modified(kind, name)
        merged = apply.apply(kind, old, applied, writer.manager, force, writer.subresource)
        if uid and uid != old["metadata"]["uid"]:
            fault = invalid_value("metadata.uid", uid, "field is immutable")
            raise invalid(kind, name, [fault, fault])
        if meta.get("name", name) != name:
            raise bad_request(
                f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
            )
        return self.update(kind, namespace, name, lambda _: merged, writer, tracked=False), False

    def _apply_new(self, kind: Kind, namespace: str, name: str, applied: Obj, writer: Writer) -> Obj:
        if writer.user:  # the right to patch does not include the right to create
            rbac.check(self.store, writer.user, Ask("create", kind.group, kind.plural, "", namespace, name))
        if applied["metadata"].setdefault("name", name) != name:
            raise bad_request(
                f"the name of the object ({applied['metadata']['name']}) does not match the name on the URL ({name})"
            )
        empty: Obj = {"metadata": {}}
        made = apply.apply(kind, empty, applied, writer.manager, force=True, subresource=writer.subresource)
        return self.create(kind, namespace, made, writer)

    def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions) -> tuple[Obj, bool]:
        """Delete an object, or begin to. Return the object as it stands now, and True if it is gone."""
        obj = self.get(kind, namespace, name)
        _check_preconditions(kind, obj, options)
        new = clone(obj)
        meta = new["metadata"]
        grace = _grace(kind, obj, options)
        _propagation_finalizer(kind, meta, options)
        deleting = "deletionTimestamp" in meta
        if not deleting or grace < meta.get("deletionGracePeriodSeconds", 0):
            when = datetime.now(UTC) + timedelta(seconds=grace)
            meta["deletionTimestamp"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
            meta["deletionGracePeriodSeconds"] = grace
            if not deleting and kind.generation:
                meta["generation"] = meta.get("generation", 0) + 1
            if kind is NAMESPACE:
                new["status"]["phase"] = "Terminating"
                meta.pop("deletionGracePeriodSeconds")
        if options.dry_run:
            return new, not meta.get("finalizers")
        stays = not _may_go(kind, new)
        if not stays and not deleting:
            return self._remove(kind, obj), True
        if new != obj:
            self.store.put(kind, new)
        if stays:
            return self.store.get(kind, namespace, name) or new, False
        return self._remove(kind, new), True

    def _remove(self, kind: Kind, obj: Obj) -> Obj:
        return self.store.remove(kind, obj)

    def bind(self, pod: Obj, node: str) -> Obj:
        """Give a pod its node: one change of spec and condition that no field manager owns."""
        meta = pod["metadata"]
        scheduled: Obj = {"type": "PodScheduled", "status": "True"}
        scheduled |= {"lastProbeTime": None, "lastTransitionTime": now()}

        def change(obj: Obj) -> Obj:
            others = [c for c in obj["status"].get("conditions", []) if c["type"] != "PodScheduled"]
            status = obj["status"] | {"conditions": [*others, scheduled]}
            return obj | {"spec": obj["spec"] | {"nodeName": node}, "status": status}

        writer = Writer(CONTROLLER, subresource="binding")
        return self.update(POD, meta["namespace"], meta["name"], change, writer, tracked=False)

    def set_status(self, kind: Kind, obj: Obj, status: Obj, manager: str = CONTROLLER) -> Obj | None:
        """Write a status if the object is still there and the status differs."""
        meta = obj["metadata"]
        namespace = meta.get("namespace", "")
        found = self.store.get(kind, namespace, meta["name"])
        if found is None or found["metadata"]["uid"] != meta["uid"]:
            return None
        if found.get("status") == status:
            return found
        writer = Writer(manager, subresource="status")
        return self.update(kind, namespace, meta["name"], lambda o: o | {"status": clone(status)}, writer)

    def try_delete(
        self, kind: Kind, obj: Obj, grace_seconds: int | None = None, propagation: str = ""
    ) -> None:
        """Delete the object of this uid; do nothing if it is gone or another has its name."""
        meta = obj["metadata"]
        options = DeleteOptions(uid=meta["uid"], grace_seconds=grace_seconds, propagation=propagation)
        try:
            self.delete(kind, meta.get("namespace", ""), meta["name"], options)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _ownership(old: Obj, new: Obj) -> Obj:
    """Return `old` with the managedFields that the writer sent: none keeps the old ones, `[{}]` clears them."""
    given = new["metadata"].pop("managedFields", None) or old["metadata"].get("managedFields")
    managers = {} if given in (None, [{}]) else {"managedFields": given}
    new["metadata"] |= managers
    kept = {k: v for k, v in old["metadata"].items() if k != "managedFields"}
    return {**old, "metadata": kept | managers}


def _spec(obj: Obj) -> Obj:
    return {k: v for k, v in obj.items() if k not in ("metadata", "status")}


def _may_go(kind: Kind, obj: Obj) -> bool:
    """Return True if a deletion began and neither a finalizer nor a grace period is left."""
    meta = obj["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if kind is NAMESPACE:
        return not obj.get("spec", {}).get("finalizers")
    return not meta.get("deletionGracePeriodSeconds")


def _check_preconditions(kind: Kind, obj: Obj, options: DeleteOptions) -> None:
    meta = obj["metadata"]
    if options.uid and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']})."
            " The object might have been deleted and then recreated"
        )
        raise precondition(kind, meta["name"], why)
    if options.resource_version and options.resource_version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the"
            f" ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified"
        )
        raise precondition(kind, meta["name"], why)


def _grace(kind: Kind, obj: Obj, options: DeleteOptions) -> int:
    if kind is not POD:
        return 0
    grace = options.grace_seconds
    if grace is None:
        grace = obj["spec"].get("terminationGracePeriodSeconds", 30)
    if not obj["spec"].get("nodeName") or obj.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return max(grace, 0)


def _propagation_finalizer(kind: Kind, meta: Obj, options: DeleteOptions) -> None:
    policy = options.propagation
    if options.orphan is not None:
        policy = "Orphan" if options.orphan else "Background"
    if not policy and kind is JOB:
        policy = "Orphan"  # batch/v1's default, kept for old clients
    wanted = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(policy)
    kept = [f for f in meta.get("finalizers", []) if f not in ("foregroundDeletion", "orphan")]
    if wanted:
        meta["finalizers"] = [*kept, wanted]
    elif policy and "finalizers" in meta:
        meta["finalizers"] = kept
    if not meta.get("finalizers"):
        meta.pop("finalizers", None)
