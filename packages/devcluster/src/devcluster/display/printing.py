"""Cells that many tables share: names and ages, in the words of kubectl."""

from typing import Any

from devcluster.resources import Obj
from devcluster.values.clock import age_seconds

Row = list[Any]
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def name_of(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def age(obj: Obj) -> str:
    return since(obj["metadata"]["creationTimestamp"])


def since(time: str | None) -> str:
    return short_time(age_seconds(time)) if time else "<unknown>"


def short_time(seconds: float) -> str:
    """Return a duration in two units, or in one if it is long."""
    s = max(int(seconds), 0)
    if s < 2 * _MINUTE:
        return f"{s}s"
    if s < 10 * _MINUTE:
        return _two(s, _MINUTE, "m", 1, "s")
    if s < 3 * _HOUR:
        return f"{s // _MINUTE}m"
    if s < 8 * _HOUR:
        return _two(s, _HOUR, "h", _MINUTE, "m")
    if s < 2 * _DAY:
        return f"{s // _HOUR}h"
    if s < 8 * _DAY:
        return _two(s, _DAY, "d", _HOUR, "h")
    return f"{s // _DAY}d" if s < 730 * _DAY else _two(s, 365 * _DAY, "y", _DAY, "d")


def _two(seconds: int, unit: int, name: str, part: int, part_name: str) -> str:
    whole, rest = seconds // unit, seconds % unit // part
    return f"{whole}{name}{rest}{part_name}" if rest else f"{whole}{name}"
