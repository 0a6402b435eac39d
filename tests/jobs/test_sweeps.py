"""Sweeps as plain values: text, points, and the order of results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import sweeps
from jobs.models import Part

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True)
TEXTS = st.text("abcXYZ019.-_/ ", min_size=1, max_size=8).map(str.strip).filter(bool)
VALUES = st.one_of(st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), TEXTS)


def part(index: int, **values: Any) -> Part:
    return Part(index=index, **values)


def test_a_grid_has_a_point_for_each_combination() -> None:
    grid = sweeps.parse("lr = 0.1, 0.01\n\nmodel = a, b, c")
    assert grid == {"lr": [0.1, 0.01], "model": ["a", "b", "c"]}
    assert sweeps.number_of(grid) == 6
    assert sweeps.points_of(grid)[:2] == [{"lr": 0.1, "model": "a"}, {"lr": 0.1, "model": "b"}]


def test_a_list_has_the_points_that_stand_there() -> None:
    points = sweeps.parse("lr, model\n0.1, a\n1, b")
    assert points == [{"lr": 0.1, "model": "a"}, {"lr": 1, "model": "b"}]
    assert sweeps.points_of(points) == points


@pytest.mark.parametrize(
    ("text", "line"),
    [("lr = 1\nmodel", 2), ("lr = 1\nlr = 2", 2), ("lr = 1,,2", 1), ("lr, b\n1", 2), ("lr\n1, 2", 2)],
)
def test_a_fault_names_its_line(text: str, line: int) -> None:
    with pytest.raises(ValueError, match=f"Line {line} "):
        sweeps.parse(text)


def test_what_json_cannot_hold_is_a_text() -> None:
    assert sweeps.parse("a = nan, inf, 007, 1e5, true") == {"a": ["nan", "inf", "007", "1e5", True]}


@given(st.dictionaries(NAMES, st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_a_grid_is_written_as_it_is_read(grid: dict[str, list[Any]]) -> None:
    read = sweeps.parse(sweeps.as_text(grid))
    assert sweeps.as_text(read) == sweeps.as_text(grid)
    assert list(read) == list(grid)


@given(st.lists(NAMES, min_size=1, max_size=3, unique=True), st.data())
def test_points_are_written_as_they_are_read(names: list[str], data: st.DataObject) -> None:
    rows = st.lists(st.lists(VALUES, min_size=len(names), max_size=len(names)), min_size=1, max_size=4)
    points = [dict(zip(names, row, strict=True)) for row in data.draw(rows)]
    read = sweeps.parse(sweeps.as_text(points))
    assert sweeps.as_text(read) == sweeps.as_text(points)
    assert sweeps.number_of(read) == len(points)


def test_points_have_the_same_names() -> None:
    assert sweeps.faults_of_points([{"lr": 1}, {"lr": 1, "b": 2}])
    assert sweeps.faults_of_points([{"lr": 1}, {"lr": [2]}])
    assert not sweeps.faults_of_points([{"lr": 1}, {"lr": "x"}])


def test_the_best_comes_first_and_what_has_no_value_last() -> None:
    parts = [
        part(0, metrics={"loss": 2.0}),
        part(1),
        part(2, metrics={"loss": 0.5}),
        part(3, metrics={"loss": float("nan")}),
    ]
    assert [one.index for one in sweeps.in_order(parts, "metrics.loss")] == [2, 0, 1, 3]
    assert [one.index for one in sweeps.in_order(parts, "-metrics.loss")] == [0, 2, 1, 3]


def test_numbers_and_texts_can_be_sorted_together() -> None:
    parts = [part(0, parameters={"a": "x"}), part(1, parameters={"a": 3}), part(2, parameters={"a": True})]
    assert [one.index for one in sweeps.in_order(parts, "parameters.a")] == [2, 1, 0]


@pytest.mark.parametrize("sort", ["nonsense", "", "metrics.", "run", "-"])
def test_another_column_is_refused(sort: str) -> None:
    with pytest.raises(ValueError, match="Sort by"):
        sweeps.in_order([], sort)
