"""What is to be done so that objects become as a file has them. Pure: values in, decisions out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Key = tuple[str | None, ...]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    old: Any
    new: Any


@dataclass(frozen=True)
class Plan:
    """Keys of objects to create, to change and to delete. What is in none of these stays as it is."""

    created: tuple[Key, ...]
    changed: tuple[Key, ...]
    deleted: tuple[Key, ...]


def plan(there: Mapping[Key, Values], wanted: Mapping[Key, Values], *, deletes_absent: bool) -> Plan:
    """Return the plan, in the order of the file. Fields that the file does not name stay as they are."""
    return Plan(
        created=tuple(key for key in wanted if key not in there),
        changed=tuple(key for key, values in wanted.items() if key in there and changes(there[key], values)),
        deleted=tuple(key for key in there if key not in wanted) if deletes_absent else (),
    )


def changes(old: Values, new: Values) -> dict[str, Change]:
    """Return the fields of `new` that differ."""
    return {
        name: Change(old.get(name), value)
        for name, value in new.items()
        if not _is_same(old.get(name), value)
    }


def _is_same(old: Any, new: Any) -> bool:
    """Compare as JSON does: 1 is 1.0, but neither is true."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_is_same(old[name], new[name]) for name in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_is_same, old, new))
    return bool(old == new)
