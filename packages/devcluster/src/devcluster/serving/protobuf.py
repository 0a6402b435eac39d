"""Bodies in protobuf, as some commands of kubectl send them, converted to the JSON that they stand for.

The types hold every field's number. Answers are JSON, which clients that send protobuf accept too.
"""

import base64
import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from devcluster.errors import bad_request
from devcluster.resources import Obj
from devcluster.typed.schema import DEDUCED, Field, described

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"


def decode(body: bytes) -> Obj:
    """Return the object in Kubernetes' envelope with its kind."""
    if not body.startswith(_MAGIC):
        raise bad_request("the protobuf body has no envelope")
    try:
        envelope = dict(_wire(body[len(_MAGIC) :]))
        about = dict(_wire(envelope[1]))
        api_version, kind = about[1].decode(), about[2].decode()
        field = described(api_version, kind) or described("meta/v1", kind) or DEDUCED
        return {"apiVersion": api_version, "kind": kind} | _struct(field, envelope.get(2, b""))
    except (ValueError, KeyError, IndexError, AttributeError, TypeError, struct.error) as error:
        raise bad_request(f"the protobuf body cannot be read: {error!r}; send JSON, as `-f` does") from error


def _wire(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (field number, integer or bytes) of every field of a message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = 8 if wire == 1 else 4
        if wire == 2:
            size, at = _varint(data, at)
        if wire not in (1, 2, 5) or at + size > len(data):
            raise ValueError("broken off")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _struct(field: Field, data: bytes, inside: tuple[int, ...] = ()) -> Obj:
    """Return a message as a JSON object; `inside` is the embedded struct that the fields belong to."""
    known = {below.numbers: (name, below) for name, below in field.fields.items() if below.numbers}
    found: Obj = {}
    for number, value in _wire(data):
        path = (*inside, number)
        if path in known:
            name, below = known[path]
            _put(found, name, below, value)
        elif any(numbers[: len(path)] == path for numbers in known):
            found |= _struct(field, value, path)
    return found


def _put(found: Obj, name: str, field: Field, value: Any) -> None:
    if field.shape == "list" and field.item:
        found.setdefault(name, []).append(_value(field.item, value))
    elif field.shape == "map" and field.item:
        entry = dict(_wire(value))
        found.setdefault(name, {})[entry.get(1, b"").decode()] = _value(field.item, entry.get(2, b""))
    else:
        found[name] = _value(field, value)


def _value(field: Field, value: Any) -> Any:
    shape = field.shape
    if shape == "struct":
        return _struct(field, value)
    if shape in ("int32", "int64"):
        return value - 2**64 if value >= 2**63 else value
    if shape == "bool":
        return bool(value)
    if shape == "float64":
        return struct.unpack("<d", value)[0]
    if shape == "bytes":
        return base64.b64encode(value).decode()
    if shape == "string":
        return value.decode()
    return _special(shape, dict(_wire(value)))


def _special(shape: str, parts: dict[int, Any]) -> Any:
    """Convert a type whose JSON form differs from its fields."""
    if shape == "Quantity":
        return parts.get(1, b"0").decode()
    if shape == "IntOrString":
        return parts.get(3, b"").decode() if parts.get(1) else parts.get(2, 0)
    if shape in ("Time", "MicroTime"):
        if not parts:
            return None
        when = datetime.fromtimestamp(parts.get(1, 0), UTC)
        micros = f".{parts.get(2, 0) // 1000:06}" if shape == "MicroTime" else ""
        return when.strftime("%Y-%m-%dT%H:%M:%S") + micros + "Z"
    return json.loads(parts.get(1) or b"null")
