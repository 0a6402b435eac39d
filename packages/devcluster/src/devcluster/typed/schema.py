"""Fields of the kinds, and how they merge: from types.json, one type at a time on first use.

A line of types.json is a type, a field its type in Go's notation (`*` where it is a pointer, `v1.PullPolicy:string`
where Go gives a plain type a name) and then words: its number in protobuf (`2.6` through an embedded struct); `in=` the
embedded struct; `always` there, however empty; `required`; `map=` keys, `set`, `atomic`, `granular` as server-side
apply merges it; `merge` (`=` key), `retainKeys`, `replace` as strategic patches do; `default=`.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from devcluster.resources import Kind, Obj


@dataclass(frozen=True, slots=True)
class Field:
    """Type of a field and its options."""

    go: str
    """Go's name of its type, as refusals show it."""
    shape: str
    """`struct`, `list`, `map`, `any` (one piece), `deduced` (a kind that is not described) or a scalar's name."""
    struct: str = ""
    item: "Field | None" = None
    pointer: bool = False
    always: bool = False
    required: bool = False
    numbers: tuple[int, ...] = ()
    embedded: str = ""
    keys: tuple[str, ...] = ()
    is_set: bool = False
    atomic: bool = False
    merges: bool = False
    merge_key: str = ""
    retains_keys: bool = False
    default: str = ""

    @property
    def fields(self) -> "dict[str, Field]":
        return _fields(self.struct) if self.struct else {}

    def child(self, name: str) -> "Field | None":
        """Return the field or the map's member of that name; None if a struct has no such field."""
        return self if self.shape == "deduced" else self.fields.get(name, self.item)


DEDUCED = Field("interface {}", "deduced")
_OTHER = "other"
"""The type of kinds that are not described: of theirs only the metadata is known."""
_ANY = ("any", "RawExtension", "FieldsV1", "JSON")


@cache
def _types() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("types.json").read_text())
    return found | {_OTHER: {"metadata": "meta.v1.ObjectMeta always"}}


@cache
def _fields(struct: str) -> dict[str, Field]:
    return {k: _field(v) for k, v in _types()[struct].items() if k != "."}


def _field(text: str) -> Field:
    kind, *words = text.split(" ")
    facts: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name[0].isdigit():
            facts["numbers"] = tuple(int(n) for n in name.split("."))
        elif name in ("always", "required", "atomic"):
            facts[name] = True
        elif name == "granular":
            facts["atomic"] = False
        else:
            facts |= _merging(name, value)
    if kind.startswith("*"):
        facts["pointer"] = True
    return _typed(kind.lstrip("*"), facts)


def _merging(name: str, value: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {
        "in": {"embedded": value},
        "default": {"default": value},
        "map": {"keys": tuple(value.split(","))},
        "set": {"is_set": True},
        "merge": {"merges": True, "merge_key": value},
        "retainKeys": {"retains_keys": True},
    }
    return found.get(name, {})


def _typed(text: str, facts: dict[str, Any]) -> Field:
    named, _, kind = text.rpartition(":")
    item = None
    if kind.startswith("[]"):
        item, shape = _typed(kind[2:], {}), "list"
        go = f"[]{item.go}"
    elif kind.startswith("map[string]"):
        item, shape = _typed(kind.removeprefix("map[string]"), {}), "map"
        go = "v1.ResourceList" if kind.endswith("Quantity") else f"map[string]{item.go}"
    elif kind in _ANY:
        go, shape = kind, "any"
    elif "." in kind:
        facts = {"atomic": "." in _types()[kind]} | facts | {"struct": kind}
        go, shape = kind.partition(".")[2], "struct"
    else:
        go, shape = {"bytes": "[]uint8"}.get(kind, kind), kind
    return Field(named or go, shape, item=item, **facts)


@cache
def described(api_version: str, kind: str) -> Field | None:
    """Return the type of a kind, if types.json has it."""
    group, _, version = api_version.rpartition("/")
    struct = f"{group.split('.')[0] or 'core'}.{version}.{kind}"
    return Field(f"{version}.{kind}", "struct", struct) if struct in _types() else None


@cache
def root(kind: Kind) -> Field:
    """Return the type of a kind that is served."""
    return described(kind.api_version, kind.kind) or Field(kind.kind, "struct", _OTHER, item=DEDUCED)


def skeleton(field: Field) -> Any:
    """Return the members that even an empty object has; nobody owns these."""
    return _bones(field.struct) if field.struct else EMPTY.get(field.shape, "")


@cache
def _bones(struct: str) -> Obj:
    return {
        k: skeleton(f) for k, f in _fields(struct).items() if f.always and k not in ("apiVersion", "kind")
    }


EMPTY: dict[str, Any] = {"list": [], "map": {}, "bool": False, "int32": 0, "int64": 0, "float64": 0}
EMPTY |= dict.fromkeys(("Time", "MicroTime", "any"))
"""Go's zero values by shape, where they are not an empty string."""


def item_key(field: Field, item: Obj) -> str:
    """Return the key of a list item as a FieldsV1 path element."""
    assert field.item is not None
    fields = field.item.fields
    found = {k: item.get(k, fields[k].default if k in fields else "") for k in sorted(field.keys)}
    return "k:" + json.dumps(found, separators=(",", ":"))
