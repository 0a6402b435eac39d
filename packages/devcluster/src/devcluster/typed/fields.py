"""Ownership of fields: sets of paths, as managedFields store them.

A path is a tuple of FieldsV1 elements: `f:name`, `k:{"name":"main"}` (item of a keyed list), `v:"x"` (member of a set).
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from devcluster.resources import Obj
from devcluster.typed.gotext import go_text
from devcluster.typed.schema import Field, item_key

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
    """Return the fields without those of the API server."""
    return {
        p
        for p in fields
        if p[0] not in ("f:apiVersion", "f:kind")
        and p != ("f:status", "f:lastPhaseTransitionTime")
        and not (p[0] == "f:metadata" and (len(p) == 1 or p[1] in _SERVERS_OWN))
    }


def encode(fields: Iterable[Path]) -> Obj:
    """Return the fields as FieldsV1."""
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


def children(field: Field | None, value: Any) -> Iterator[tuple[str, Field | None, Any]] | None:
    """Yield (element, its field, child) of a value with parts; return None for an atomic value."""
    if field is None or field.atomic or field.shape == "any":
        return None
    if isinstance(value, dict):
        return ((f"f:{k}", field.child(k), v) for k, v in value.items())
    if isinstance(value, list) and field.is_set:
        return (("v:" + json.dumps(v), None, v) for v in value)
    if isinstance(value, list) and field.keys:
        return ((item_key(field, v), field.item, v) for v in value)
    return None


def leaves(field: Field | None, value: Any, at: Path = ()) -> Fields:
    """Return the fields that an applied configuration states: its leaves and its list items."""
    parts = children(field, value)
    if parts is None:
        return {at}
    found: Fields = {at} if at and at[-1].startswith("k:") else set()
    empty = True
    for element, below, child in parts:
        empty = False
        found |= leaves(below, child, (*at, element))
    if empty and at:
        found.add(at)
    return found


def _everything(field: Field | None, value: Any, at: Path) -> Fields:
    found: Fields = {at}
    for element, below, child in children(field, value) or ():
        found |= _everything(below, child, (*at, element))
    return found


def compare(field: Field | None, old: Any, new: Any, at: Path = ()) -> tuple[Fields, Fields]:
    """Return the (changed or added, removed) paths between two values."""
    if old == new:
        return set(), set()
    before, after = children(field, old), children(field, new)
    if before is None or after is None:
        return {at}, set()
    olds = {e: v for e, _, v in before}
    changed: Fields = set()
    removed: Fields = set()
    for element, below, child in after:
        path = (*at, element)
        if element not in olds:
            changed |= _everything(below, child, path)
            continue
        more, less = compare(below, olds.pop(element), child, path)
        changed |= more
        removed |= less
    for element, below, child in children(field, old) or ():
        if element in olds:
            removed |= _everything(below, child, (*at, element))
    return changed, removed


def check_declared(field: Field | None, value: Any, at: Path = ()) -> None:
    """Raise ValueError, in the words of structured-merge-diff, for an invalid applied configuration."""
    if field is None or value is None or field.shape in ("any", "deduced", "Quantity", "IntOrString"):
        return
    if isinstance(value, dict) and field.struct:
        for name in value:
            if field.child(name) is None:
                raise ValueError(f"{show((*at, f'f:{name}'))}: field not declared in schema")
    if not isinstance(value, _TAKES.get(field.shape, str)) or isinstance(value, bool) != (
        field.shape == "bool"
    ):
        raise ValueError(f"{show(at)}: expected {_expected(field.shape, value)}")
    if isinstance(value, dict):
        for name, child in value.items():
            check_declared(field.child(name), child, (*at, f"f:{name}"))
    elif isinstance(value, list):
        _check_items(field, value, at)


def _check_items(field: Field, items: list[Any], at: Path) -> None:
    seen = set()
    for n, item in enumerate(items):
        element = f"v:{json.dumps(item)}" if field.is_set else f"i:{n}"
        if field.keys and isinstance(item, dict):
            element = item_key(field, item)
        if element in seen:
            raise ValueError(f"{show(at)}: duplicate entries for key {show((element,))}")
        seen.add(element)
        check_declared(field.item, item, (*at, element))


_TAKES: dict[str, Any] = {"struct": dict, "map": dict, "list": list, "bool": bool}
_TAKES |= dict.fromkeys(("int32", "int64", "float64"), (int, float))


def _expected(shape: str, value: Any) -> str:
    if shape in ("struct", "map", "list", "bool"):
        wanted = {"list": "list", "bool": "boolean"}.get(shape, "map")
        return f"{wanted}, got &{{{go_text(value)}}}"
    if shape in _TAKES:
        return f"numeric (int or float), got {'bool' if isinstance(value, bool) else 'string'}"
    return f"string, got &value.valueUnstructured{{Value:{go_text(value)}}}"


def show(path: Path) -> str:
    """Write a path as conflicts show it: `.spec.containers[name="main"].image`."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind in ("v", "i"):
            text += f"[={rest}]" if kind == "v" else f"[{rest}]"
        else:
            pairs = json.loads(rest).items()
            text += "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in pairs) + "]"
    return text
