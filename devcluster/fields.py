"""Who owns which field: sets of paths, as managedFields keep them.

A path is a tuple of FieldsV1 elements: `f:name`, `k:{"name":"main"}` (item of a keyed list), `v:"x"` (member of a set).
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from devcluster.resources import Obj
from devcluster.schema import ATOMIC_MAPS, SETS, item_key, list_keys

Path = tuple[str, ...]
Fields = set[Path]

_SERVERS_OWN = {
    f"f:{name}"
    for name in (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
}


def owned(fields: Fields) -> Fields:
    """Without what belongs to the API server."""
    return {
        p
        for p in fields
        if p[0] not in ("f:apiVersion", "f:kind")
        and p != ("f:status", "f:lastPhaseTransitionTime")
        and not (p[0] == "f:metadata" and (len(p) == 1 or p[1] in _SERVERS_OWN))
    }


def encode(fields: Iterable[Path]) -> Obj:
    """As FieldsV1."""
    tree: Obj = {}
    paths = set(fields)
    for path in sorted(paths):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
    parents = {p[:i] for p in paths for i in range(1, len(p))}
    for path in paths & parents:
        node = tree
        for element in path:
            node = node[element]
        node["."] = {}
    return _sorted(tree)


def _sorted(tree: Obj) -> Obj:
    return {k: _sorted(tree[k]) for k in sorted(tree, key=lambda k: (k != ".", k))}


def decode(tree: Obj, at: Path = ()) -> Fields:
    found: Fields = set()
    for element, below in tree.items():
        if element == ".":
            found.add(at)
        elif not below:
            found.add((*at, element))
        else:
            found |= decode(below, (*at, element))
    return found


def children(name: str, value: Any) -> Iterator[tuple[str, str, Any]] | None:
    """(element, field name, child) of a value that is not one piece; None of one that is."""
    if isinstance(value, dict) and name not in ATOMIC_MAPS:
        return ((f"f:{k}", k, v) for k, v in value.items())
    if isinstance(value, list):
        if name in SETS:
            return (("v:" + json.dumps(v), "", v) for v in value)
        if keys := list_keys(name, value):
            return ((item_key(keys, v), f"{name}[]", v) for v in value)
    return None


def leaves(value: Any, at: Path = (), name: str = "") -> Fields:
    """What an applied configuration states: its leaves and its list items."""
    parts = children(name, value)
    if parts is None:
        return {at}
    found: Fields = {at} if at and at[-1].startswith("k:") else set()
    empty = True
    for element, field, child in parts:
        empty = False
        found |= leaves(child, (*at, element), field)
    if empty and at:
        found.add(at)
    return found


def _everything(value: Any, at: Path, name: str) -> Fields:
    found: Fields = {at}
    for element, field, child in children(name, value) or ():
        found |= _everything(child, (*at, element), field)
    return found


def compare(old: Any, new: Any, at: Path = (), name: str = "") -> tuple[Fields, Fields]:
    """(changed or added, removed) paths between two values."""
    if old == new:
        return set(), set()
    before, after = children(name, old), children(name, new)
    if before is None or after is None:
        return {at}, set()
    olds = {e: (f, v) for e, f, v in before}
    changed: Fields = set()
    removed: Fields = set()
    for element, field, child in after:
        path = (*at, element)
        if element not in olds:
            changed |= _everything(child, path, field)
            continue
        more, less = compare(olds.pop(element)[1], child, path, field)
        changed |= more
        removed |= less
    for element, (field, child) in olds.items():
        removed |= _everything(child, (*at, element), field)
    return changed, removed


def show(path: Path) -> str:
    """`.spec.containers[name="main"].image`, as conflicts are reported."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "v":
            text += f"[={rest}]"
        else:
            pairs = json.loads(rest).items()
            text += "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in pairs) + "]"
    return text
