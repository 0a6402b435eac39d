"""Sweeps: one job over many points, from a grid or a list of points; and the order of their results. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import isfinite, isnan, prod
from typing import Any

from django.utils.translation import gettext as _

from clusters.site import environment

from .models import Part

MOST_PARTS = 1000
LONGEST_NAME = 63
# Values by name, of which each combination is a point; or the points themselves.
Grid = Mapping[str, Sequence[Any]]
Points = Sequence[Mapping[str, Any]]


def number_of(sweep: Grid | Points) -> int:
    if isinstance(sweep, Mapping):
        return prod(len(values) for values in sweep.values())
    return len(sweep)


def points_of(sweep: Grid | Points) -> list[dict[str, Any]]:
    """Return the parameters of each part, in the order of the sweep."""
    if isinstance(sweep, Mapping):
        return [dict(zip(sweep, values, strict=True)) for values in product(*sweep.values())]
    return [dict(point) for point in sweep]


def faults_of_names(names: Iterable[str]) -> list[str]:
    """Return what is wrong with names of parameters, which become BERTH_PARAM_NAME."""
    names = list(names)
    if not all(environment.NAME.fullmatch(name) and len(name) <= LONGEST_NAME for name in names):
        return [_("Names have letters, digits and _, at most 63.")]
    if len({name.upper() for name in names}) < len(names):
        return [_("Two names differ only in capitals.")]
    return []


def faults_of_values(values: Iterable[Any]) -> list[str]:
    if all(isinstance(value, str | int | float) and "\0" not in str(value) for value in values):
        return []
    return [_("Values are texts, numbers, true or false.")]


def faults_of(sweep: Grid | Points) -> list[str]:
    if not isinstance(sweep, Mapping):
        return faults_of_points(sweep)
    return faults_of_names(sweep) + faults_of_values(value for each in sweep.values() for value in each)


def faults_of_points(points: Points) -> list[str]:
    if any(set(point) != set(points[0]) for point in points):
        return [_("All points need the same names.")]
    return faults_of_names(points[0]) + faults_of_values(
        value for point in points for value in point.values()
    )


# --- Text of a form


def parse(text: str) -> Grid | Points:
    """Read a sweep: lines of `name = value, value` are a grid; lines of values below a line of names are points.

    Raise ValueError with a sentence that says which line is wrong.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        return {}
    return _grid(lines) if "=" in lines[0][1] else _points(lines)


def _grid(lines: Sequence[tuple[int, str]]) -> Grid:
    grid: dict[str, list[Any]] = {}
    for number, line in lines:
        name, separator, values = line.partition("=")
        if not separator:
            raise ValueError(_("Line %(n)d has no “=”. Write lr = 0.1, 0.01.") % {"n": number})
        if name.strip() in grid:
            raise ValueError(_("Line %(n)d names a parameter for the second time.") % {"n": number})
        grid[name.strip()] = _cells(values, number)
    return grid


def _points(lines: Sequence[tuple[int, str]]) -> Points:
    (first, head), *rows = lines
    names = [str(name) for name in _cells(head, first)]
    if not rows:
        raise ValueError(_("Below the names stands no point. Write one per line."))
    points = []
    for number, line in rows:
        cells = _cells(line, number)
        if len(cells) != len(names):
            raise ValueError(
                _("Line %(n)d has %(count)d values, and there are %(names)d names.")
                % {"n": number, "count": len(cells), "names": len(names)}
            )
        points.append(dict(zip(names, cells, strict=True)))
    return points


def _cells(text: str, number: int) -> list[Any]:
    cells = [cell.strip() for cell in text.split(",")]
    if not all(cells):
        raise ValueError(_("Line %(n)d has an empty value.") % {"n": number})
    return [_value(cell) for cell in cells]


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            found = number(text)
        except ValueError:
            continue
        # What would be written otherwise, as 007 or 1e5, stays as it was typed.
        return found if isfinite(found) and str(found) == text else text
    return text


def as_text(sweep: Grid | Points) -> str:
    """Return the lines from which `parse` reads the sweep."""
    if isinstance(sweep, Mapping):
        return "\n".join(f"{name} = {', '.join(map(written, values))}" for name, values in sweep.items())
    rows = [", ".join(written(value) for value in point.values()) for point in sweep]
    return "\n".join([", ".join(sweep[0]), *rows]) if sweep else ""


def written(value: Any) -> str:
    """Return a value of a parameter or metric as text: as programs get it."""
    return value if isinstance(value, str) else json.dumps(value)


# --- Order of results


def names_in(parts: Iterable[Part], field: str) -> list[str]:
    """Return the names in a JSON field of the parts, in the order in which they appear."""
    return list(dict.fromkeys(name for part in parts for name in getattr(part, field)))


SORTS: dict[str, Callable[[Part], Any]] = {
    "index": lambda part: part.index,
    "phase": lambda part: part.phase,
    "attempts": lambda part: part.number,
}


def in_order(parts: Iterable[Part], sort: str) -> list[Part]:
    """Sort by a column: `index`, `phase`, `attempts`, `parameters.NAME` or `metrics.NAME`; `-`: backwards.

    Parts without a value come last in either direction. Raise ValueError for another column.
    """
    column = sort.removeprefix("-")
    field, _dot, name = column.partition(".")
    if column in SORTS:
        value = SORTS[column]
    elif field in ("parameters", "metrics") and name:
        value = lambda part: getattr(part, field).get(name)  # noqa: E731
    else:
        raise ValueError(_("Sort by index, phase, attempts, parameters.NAME or metrics.NAME."))
    by_index = sorted(parts, key=lambda part: part.index)
    there = [part for part in by_index if not _is_missing(value(part))]
    there.sort(key=lambda part: _comparable(value(part)), reverse=sort.startswith("-"))
    return there + [part for part in by_index if _is_missing(value(part))]


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


def _comparable(value: Any) -> tuple[bool, Any]:
    """Numbers before texts."""
    return (True, value) if isinstance(value, str) else (False, value)
