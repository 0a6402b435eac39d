"""Garbage collection: an owner's dependents are deleted before it (foreground), after it, or not at all (orphan)."""

from collections import defaultdict
from collections.abc import Iterable

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.resources import Kind, Obj, kind_of
from devcluster.store import Change

Key = tuple[Kind, str, str, str]
"""Kind, namespace, name, uid."""


def _key(kind: Kind, obj: Obj) -> Key:
    meta = obj["metadata"]
    return kind, meta.get("namespace", ""), meta["name"], meta["uid"]


class GarbageCollector(Controller[Key]):
    def __init__(self, api: Api):
        super().__init__(api)
        self._dependents: dict[str, dict[Key, None]] = defaultdict(dict)

    def keys(self, change: Change) -> Iterable[Key]:
        key = _key(change.kind, change.obj)
        refs = change.obj["metadata"].get("ownerReferences", [])
        for ref in (change.old or {"metadata": {}})["metadata"].get("ownerReferences", []):
            self._dependents[ref["uid"]].pop(key, None)
        if change.type == "DELETED":
            for ref in refs:
                if owner := self._owner_key(ref, key[1]):
                    yield owner  # the owner may wait for this dependent
            yield from self._dependents.pop(key[3], {})
            return
        for ref in refs:
            self._dependents[ref["uid"]][key] = None
        if refs or _policy(change.obj):
            yield key

    def _owner_key(self, ref: Obj, namespace: str) -> Key | None:
        kind = kind_of(ref["apiVersion"], ref["kind"])
        if kind is None or (kind.namespaced and not namespace):
            return None
        return kind, namespace if kind.namespaced else "", ref["name"], ref["uid"]

    def _find(self, key: Key) -> Obj | None:
        kind, namespace, name, uid = key
        found = self.api.store.get(kind, namespace, name)
        return found if found is not None and found["metadata"]["uid"] == uid else None

    async def reconcile(self, key: Key) -> float | None:
        obj = self._find(key)
        if obj is None:
            return None
        policy = _policy(obj)
        if policy:
            self._settle(key, obj, policy)
        elif "deletionTimestamp" not in obj["metadata"]:
            self._collect(key, obj)
        return None

    def _collect(self, key: Key, obj: Obj) -> None:
        """Delete an object whose owners are all gone, or are being deleted and wait for it."""
        refs = obj["metadata"].get("ownerReferences", [])
        owners = [(r, self._owner_key(r, key[1])) for r in refs]
        if not refs or any(k is None for _, k in owners):
            return  # an owner of an unknown kind may exist
        alive = [(r, o) for r, k in owners if k and (o := self._find(k))]
        staying = [r for r, o in alive if _policy(o) != "foregroundDeletion"]
        if staying:
            if len(staying) < len(refs):
                self._keep_refs(key, staying)
        elif alive:
            self.api.try_delete(key[0], obj, propagation="Foreground" if self._dependents.get(key[3]) else "")
        else:
            self.api.try_delete(key[0], obj, propagation="Background")

    def _keep_refs(self, key: Key, refs: list[Obj]) -> None:
        kind, namespace, name, _ = key

        def change(obj: Obj) -> Obj:
            obj["metadata"]["ownerReferences"] = refs
            return obj

        self.api.update(kind, namespace, name, change, Writer(CONTROLLER))

    def _settle(self, key: Key, owner: Obj, policy: str) -> None:
        dependents = [k for k in self._dependents.get(key[3], {}) if self._find(k)]
        if policy == "orphan":
            for dependent in dependents:
                obj = self._find(dependent)
                refs = obj["metadata"].get("ownerReferences", []) if obj else []
                self._keep_refs(dependent, [r for r in refs if r["uid"] != key[3]])
        else:
            for dependent in dependents:
                self.add(dependent)
            if any(self._blocks(d, key[3]) for d in dependents):
                return
        kind, namespace, name, _ = key

        def change(obj: Obj) -> Obj:
            obj["metadata"]["finalizers"] = [f for f in obj["metadata"].get("finalizers", []) if f != policy]
            return obj

        self.api.update(kind, namespace, name, change, Writer(CONTROLLER))

    def _blocks(self, dependent: Key, owner_uid: str) -> bool:
        obj = self._find(dependent)
        refs = obj["metadata"].get("ownerReferences", []) if obj else []
        return any(r["uid"] == owner_uid and r.get("blockOwnerDeletion") for r in refs)


def _policy(obj: Obj) -> str:
    """Return the deletion finalizer that this controller must handle, if the object is being deleted."""
    meta = obj["metadata"]
    if "deletionTimestamp" not in meta:
        return ""
    return next((f for f in meta.get("finalizers", []) if f in ("orphan", "foregroundDeletion")), "")
