"""Lookup of objects by their controller, in an index that is updated with every change instead of a scan."""

from collections import defaultdict

from devcluster.resources import Kind, Obj, kind_of
from devcluster.store import Change, Store

Key = tuple[str, str]
"""Namespace and name."""


def key_of(obj: Obj) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def controller_of(obj: Obj) -> Obj | None:
    """Return the owner reference that names the object's controller."""
    return next((r for r in obj["metadata"].get("ownerReferences", []) if r.get("controller")), None)


def reference_to(kind: Kind, owner: Obj) -> Obj:
    """Return an owner reference that does not make the owner the controller."""
    meta = owner["metadata"]
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta["name"], "uid": meta["uid"]}


def control_by(kind: Kind, owner: Obj) -> Obj:
    return reference_to(kind, owner) | {"controller": True, "blockOwnerDeletion": True}


class Controlled:
    """Objects of one kind by their controller, and those without one by their labels."""

    def __init__(self, store: Store, kind: Kind):
        self._store, self._kind = store, kind
        self._names: dict[tuple[Kind | None, Key], dict[str, None]] = defaultdict(dict)
        for obj in store.each(kind):
            for place in self._places(obj):
                self._names[place][obj["metadata"]["name"]] = None
        store.listen(self._heard)

    def of(self, kind: Kind, owner: Obj) -> list[Obj]:
        """Return the objects that this owner (by its uid) controls."""
        uid = owner["metadata"]["uid"]
        return [o for o in self.named(kind, key_of(owner)) if (controller_of(o) or {}).get("uid") == uid]

    def named(self, kind: Kind, owner: Key) -> list[Obj]:
        """Return the objects whose controller has this name, even if it no longer exists."""
        return self._at((kind, owner), owner[0])

    def orphans(self, namespace: str, selector: Obj | None = None) -> list[Obj]:
        """Return the uncontrolled objects that this selector may select, found by its first label."""
        labels = (selector or {}).get("matchLabels") or {}
        first = next((f"{k}={v}" for k, v in labels.items()), "")
        return self._at((None, (namespace, first)), namespace)

    def _at(self, place: tuple[Kind | None, Key], namespace: str) -> list[Obj]:
        found = (self._store.get(self._kind, namespace, name) for name in self._names.get(place, ()))
        return [obj for obj in found if obj is not None]

    def _places(self, obj: Obj) -> set[tuple[Kind | None, Key]]:
        namespace, ref = obj["metadata"].get("namespace", ""), controller_of(obj)
        if ref:
            return {(kind_of(ref["apiVersion"], ref["kind"]), (namespace, ref["name"]))}
        labels = obj["metadata"].get("labels") or {}
        return {(None, (namespace, label)) for label in ("", *(f"{k}={v}" for k, v in labels.items()))}

    def _heard(self, change: Change) -> None:
        if change.kind is not self._kind:
            return
        name = change.obj["metadata"]["name"]
        before = self._places(change.old) if change.old else set()
        now = self._places(change.obj) if change.type != "DELETED" else set()
        for place in before - now:
            self._names[place].pop(name, None)
            if not self._names[place]:
                del self._names[place]
        for place in now - before:
            self._names[place][name] = None
