"""Decoding of clients' bodies as Go does it: unknown fields are noticed, wrong types refused.

Go changes the objects that it decodes: null and empty members are dropped where the type says so, and members that
the type always has are added. `read` does the same.
"""

import base64
import binascii
import json
import re
from typing import Any

from devcluster.resources import Kind, Obj
from devcluster.store import clone
from devcluster.typed.schema import Field, root, skeleton
from devcluster.values.quantity import MALFORMED, canonical

JSON_KINDS: dict[type, str] = {
    int: "number",
    float: "number",
    bool: "bool",
    dict: "object",
    list: "array",
    str: "string",
}
"""Go's names for the kinds of JSON values."""
_TAKES = {
    "string": str,
    "bool": bool,
    "Time": str,
    "MicroTime": str,
    "bytes": str,
    "struct": dict,
    "map": dict,
}
_TAKES |= {"list": list}
_LIMITS = {"int32": 2**31, "int64": 2**63}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


class Unreadable(Exception):
    """Message of Go's decoder; `restored` is its form for the result of a strategic patch."""

    def __init__(self, words: str, restored: str = ""):
        super().__init__(words)
        self.restored = restored or words


class Doubled(dict[str, Any]):
    """JSON object that names some members twice."""

    names: tuple[str, ...] = ()


def members(pairs: list[tuple[str, Any]]) -> Obj:
    """Collect a JSON object's members and remember doubled names: an object_pairs_hook for json."""
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    doubled, seen = Doubled(found), set[str]()
    doubled.names = tuple(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
    return doubled


def no_json(raw: bytes, error: ValueError, wanted: str) -> str:
    """Return Go's message for a body that is not JSON."""
    at = error.pos if isinstance(error, json.JSONDecodeError) else 0
    rest = raw.decode(errors="replace")[at:].lstrip()
    why = (
        f"invalid character '{rest[0]}' looking for beginning of value"
        if rest
        else "unexpected end of JSON input"
    )
    return unrecognized(wanted, why, raw)


def unrecognized(wanted: str, why: str, raw: bytes) -> str:
    shown = "<empty>" if not raw else raw.decode() if raw.startswith(b"{") else raw.hex()
    told = f"the object provided is unrecognized (must be of type {wanted})"
    return f"{told}: couldn't get version/kind; json parse error: {why} ({shown})"


def read(kind: Kind, body: Obj) -> tuple[Obj, list[str]]:
    """Return the object as its type has it, and the problems that a lenient reader ignores."""
    reader = _Reader()
    field = root(kind)
    return reader.struct(field, body, "", _At(field.go.rpartition(".")[2], "")), reader.faults


class _At:
    """Place in Go's words: the struct that it belongs to, and the path without indices."""

    __slots__ = ("path", "struct")

    def __init__(self, struct: str, path: str):
        self.struct, self.path = struct, path


class _Reader:
    def __init__(self) -> None:
        self.faults: list[str] = []

    def struct(self, field: Field, value: Obj, shown: str, at: _At) -> Obj:
        fields, found = field.fields, Obj()
        doubled = value.names if isinstance(value, Doubled) else ()
        for name, given in value.items():
            below = fields.get(name, field.item)
            path = f"{shown}.{name}" if shown else name
            if name in doubled:
                self.faults.append(f'duplicate field "{path}"')
            if below is None:
                self.faults.append(f'unknown field "{path}"')
                continue
            inside = f"{below.embedded}.{name}" if below.embedded else name
            place = _At(at.struct, f"{at.path}.{inside}" if at.path else inside)
            read = self.value(below, given, path, place)
            if read is not None and (
                below.always or below.pointer or below.shape == "struct" or read not in _EMPTIES
            ):
                found[name] = read
        for name, below in fields.items():
            if below.always and name not in found and below.shape in _FILLED:
                found[name] = clone(skeleton(below))
        return found

    def value(self, field: Field, value: Any, shown: str, at: _At) -> Any:
        shape = field.shape
        if value is None or shape in ("any", "deduced"):
            return value
        if shape == "Quantity":
            return _quantity(value)
        takes = _TAKES.get(shape)
        if takes is None:
            _number(field, value, at)
        elif not isinstance(value, takes):
            raise _wrong(field, value, at)
        if shape == "struct":
            return self.struct(field, value, shown, _At(field.go.rpartition(".")[2], at.path))
        if field.item:
            return self.items(field.item, value, shown, at)
        if shape == "bytes":
            _base64(value)
        elif shape in ("Time", "MicroTime"):
            _time(value, shape)
        return value

    def items(self, field: Field, value: Any, shown: str, at: _At) -> Any:
        """Read the items of a list or a map; neither may hold null."""
        if isinstance(value, list):
            read = (self.value(field, v, f"{shown}[{n}]", at) for n, v in enumerate(value))
            return [clone(skeleton(field)) if v is None else v for v in read]
        if isinstance(value, Doubled):
            self.faults += [f'duplicate field "{shown}.{name}"' for name in value.names]
        pairs = ((k, self.value(field, v, f"{shown}.{k}", at)) for k, v in value.items())
        return {k: clone(skeleton(field)) if v is None else v for k, v in pairs}


_FILLED = ("struct", "Time", "MicroTime", "bool", "int32", "int64")
"""What comes in where it is always there; strings are left to the defaults."""
_EMPTIES: tuple[Any, ...] = ("", 0, False, [], {})


def _number(field: Field, value: Any, at: _At) -> None:
    if field.shape == "IntOrString" and isinstance(value, str):
        return
    wanted = (int, float) if field.shape == "float64" else int
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(field, value, at)
    if not isinstance(value, wanted) or abs(value) >= _LIMITS.get(field.shape, 2**63):
        raise _wrong(field, value, at, f" {json.dumps(value)}")


def _wrong(field: Field, value: Any, at: _At, literal: str = "") -> Unreadable:
    go = "int32" if field.shape == "IntOrString" else "string" if field.shape == "Time" else field.go
    restored = {
        "list": f"cannot restore slice from {_kind(value)}",
        "map": f"cannot restore map from {_kind(value)}",
        "struct": f"cannot restore struct from: {_kind(value)}",
    }.get(field.shape, f"unrecognized type: {go}")
    place = f"Go struct field {at.struct}.{at.path}"
    return Unreadable(
        f"json: cannot unmarshal {JSON_KINDS[type(value)]}{literal} into {place} of type {go}", restored
    )


def _kind(value: Any) -> str:
    """Return Go's kind of a decoded JSON value."""
    return {int: "int64", float: "float64", dict: "map", Doubled: "map", list: "slice", str: "string"}.get(
        type(value), "bool"
    )


def _time(value: str, shape: str) -> None:
    if not _TIME.fullmatch(value):
        layout = "2006-01-02T15:04:05" + (".000000" if shape == "MicroTime" else "") + "Z07:00"
        raise Unreadable(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Unreadable(MALFORMED)
    try:
        return canonical(value)
    except ValueError as error:
        raise Unreadable(str(error)) from error


def _base64(value: str) -> None:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        bad = re.search(r"[^A-Za-z0-9+/=]", value)
        at = bad.start() if bad else len(value) // 4 * 4
        raise Unreadable(f"illegal base64 data at input byte {at}") from error
