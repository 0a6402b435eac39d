"""Server-side apply, and the field ownership that every write records (metadata.managedFields)."""

import json
from dataclasses import dataclass
from typing import Any

from devcluster.errors import ApiError
from devcluster.resources import Kind, Obj
from devcluster.serving.decoding import read
from devcluster.store import clone
from devcluster.typed.fields import Fields, Path, children, compare, decode, encode, leaves, owned, show
from devcluster.typed.schema import Field, item_key, root, skeleton
from devcluster.values.clock import now


@dataclass
class Manager:
    name: str
    operation: str
    subresource: str
    api_version: str
    time: str
    fields: Fields

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, self.operation, self.subresource

    @property
    def entry(self) -> Obj:
        entry: Obj = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        entry |= {"time": self.time} if self.time else {}
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": encode(self.fields)}
        return entry | ({"subresource": self.subresource} if self.subresource else {})

    @property
    def quoted(self) -> str:
        via = f' with subresource "{self.subresource}"' if self.subresource else ""
        using = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.name}"{via}{using}'


Managers = dict[tuple[str, str, str], Manager]


def _managers(obj: Obj) -> Managers:
    found: Managers = {}
    for entry in obj["metadata"].get("managedFields") or []:
        manager = Manager(
            entry["manager"],
            entry["operation"],
            entry.get("subresource", ""),
            entry["apiVersion"],
            entry.get("time", ""),
            decode(entry.get("fieldsV1") or {}),
        )
        found[manager.key] = manager
    return found


def _store(obj: Obj, managers: Managers) -> None:
    kept = [m for m in managers.values() if m.fields]
    kept.sort(key=lambda m: (m.operation, m.time, m.name))
    if kept:
        obj["metadata"]["managedFields"] = [m.entry for m in kept]
    else:
        obj["metadata"].pop("managedFields", None)


def _bare(obj: Obj) -> Obj:
    """Return the object without the parts that nobody can own."""
    meta = {k: v for k, v in obj["metadata"].items() if k not in ("managedFields", "resourceVersion")}
    return {**obj, "metadata": meta}


def _padded(obj: Any, bones: Any) -> Any:
    """Add the members that every object of the kind has, so that nobody becomes their owner."""
    if not isinstance(bones, dict) or not isinstance(obj, dict):
        return bones if obj is None else obj
    return {**bones, **{k: _padded(v, bones.get(k)) for k, v in obj.items()}}


def _differences(kind: Kind, old: Obj | None, new: Obj) -> tuple[Fields, Fields]:
    """Return the fields with an owner that were (changed or added, removed)."""
    field = root(kind)
    bones = skeleton(field)
    before = _padded(_bare(old), bones) if old else bones
    if old is None:
        new = {k: v for k, v in new.items() if k != "status"}
    changed, removed = compare(field, before, _padded(_bare(new), bones))
    return owned(changed), owned(removed)


def track_update(kind: Kind, old: Obj | None, new: Obj, manager: str, subresource: str = "") -> None:
    """Record in `new` that `manager` changed each field that differs from `old`."""
    managers = _managers(old or {"metadata": {}})
    changed, removed = _differences(kind, old, new)
    if old is not None and not changed and not removed:
        _store(new, managers)
        return
    key = (manager, "Update", subresource)
    mine = managers.pop(key, None)
    for other in managers.values():
        other.fields -= changed | removed
    if subresource == "scale" and not new["spec"]["replicas"]:
        changed = set()  # a Scale of None has no such member
    fields = (mine.fields if mine else set()) - removed | changed
    time = "" if subresource == "scale" else now()
    managers[key] = Manager(manager, "Update", subresource, kind.api_version, time, fields)
    _store(new, managers)


def _merge(field: Field | None, live: Any, applied: Any) -> Any:
    if children(field, applied) is None or children(field, live) is None or field is None:
        return clone(applied)
    if isinstance(applied, dict):
        if not isinstance(live, dict):
            return clone(applied)
        return {
            **live,
            **{k: _merge(field.child(k), live[k], v) if k in live else clone(v) for k, v in applied.items()},
        }
    if not field.keys:
        return live + [v for v in applied if v not in live]
    had, wanted = ({item_key(field, i): i for i in items} for items in (live, applied))
    merged = {k: _merge(field.item, had[k], i) if k in had else clone(i) for k, i in wanted.items()}
    return [merged[k] if k in merged else had[k] for k in _interleaved(list(had), list(wanted))]


def _interleaved(had: list[str], wanted: list[str]) -> list[str]:
    """Return the applied list's order, with items of the live list at their places there."""
    found = []
    while had or wanted:
        if had and had[0] not in wanted:
            if had[0] not in found:
                found.append(had[0])
            had = had[1:]
            continue
        if wanted:
            found.append(wanted[0])
            had = had[had[:1] == wanted[:1] :]
            wanted = wanted[1:]
    return found


def _drop(field: Field | None, value: Any, path: Path) -> Any:
    """Remove the part at `path`, and members that become empty."""
    element, rest = path[0], path[1:]
    if isinstance(value, dict) and element.startswith("f:"):
        key = element[2:]
        if key not in value:
            return value
        left = _drop(field.child(key) if field else None, value[key], rest) if rest else None
        kept = {k: v for k, v in value.items() if k != key}
        return kept if left in (None, {}, []) else {**kept, key: left}
    if isinstance(value, list):
        for item, (found, below, _) in zip(value, children(field, value) or (), strict=False):
            if found != element:
                continue
            if not rest:
                return [i for i in value if i is not item]
            return [_drop(below, i, rest) if i is item else i for i in value] if below else value
    return value


def _is_key(path: Path) -> bool:
    """Return True for a part of a list item's key, which is removed only with the whole item."""
    return len(path) > 1 and path[-2].startswith("k:") and path[-1][2:] in json.loads(path[-2][2:])


def _owned_below(path: Path, managers: Managers, but: tuple[str, str, str]) -> bool:
    return any(p[: len(path)] == path for m in managers.values() if m.key != but for p in m.fields)


def apply(kind: Kind, live: Obj, applied: Obj, manager: str, force: bool, subresource: str = "") -> Obj:
    """Return the object after `manager` applied its configuration, with ownership; refuse conflicts."""
    managers = _managers(live)
    key = (manager, "Apply", subresource)
    applied = _within(kind, applied, subresource)
    wanted = owned(leaves(root(kind), _bare(applied)))
    last = managers[key].fields if key in managers else set()
    merged: Obj = _merge(root(kind), _bare(live), _bare(applied))
    for path in sorted(last - wanted, key=len):
        if _is_key(path):
            continue
        below_wanted = any(p[: len(path)] == path for p in wanted)
        if not below_wanted and not _owned_below(path, managers, key):
            merged = _drop(root(kind), merged, path)
    changed, removed = _differences(kind, live, merged)
    _settle_conflicts(managers, key, changed, force)
    merged, _ = read(kind, merged)
    for other in managers.values():
        if other.key != key:
            other.fields -= removed
    same = key in managers and last == wanted and not any(_differences(kind, live, merged))
    time = managers[key].time if same else now()
    managers[key] = Manager(manager, "Apply", subresource, kind.api_version, time, wanted)
    merged["metadata"]["resourceVersion"] = live["metadata"].get("resourceVersion", "")
    _store(merged, managers)
    return merged


def _within(kind: Kind, applied: Obj, subresource: str) -> Obj:
    """Return the part that this write may own: an object without its status, or the status alone."""
    if subresource == "status":
        return {k: v for k, v in applied.items() if k == "status"} | {"metadata": {}}
    return {k: v for k, v in applied.items() if k != "status" or "status" not in kind.subresources}


def _settle_conflicts(managers: Managers, key: tuple[str, str, str], changed: Fields, force: bool) -> None:
    causes = []
    for other in sorted(managers.values(), key=lambda m: m.quoted):
        for path in sorted(other.fields & changed) if other.key != key else ():
            cause = {"reason": "FieldManagerConflict", "message": f"conflict with {other.quoted}"}
            causes.append(cause | {"field": show(path)})
        if force and other.key != key:
            other.fields -= changed
    if causes and not force:
        raise _conflict(causes)


def _conflict(causes: list[Obj]) -> ApiError:
    plural = "conflict" if len(causes) == 1 else "conflicts"
    if len(causes) == 1:
        told = f"{causes[0]['message']}: {causes[0]['field']}"
    else:
        by_manager: dict[str, list[str]] = {}
        for cause in causes:
            by_manager.setdefault(cause["message"].replace("conflict with", "conflicts with"), []).append(
                cause["field"]
            )
        told = "\n".join(
            f"{who}:\n" + "\n".join(f"- {f}" for f in fields) for who, fields in by_manager.items()
        )
    message = f"Apply failed with {len(causes)} {plural}: {told}"
    return ApiError(409, "Conflict", message, {"causes": causes})
