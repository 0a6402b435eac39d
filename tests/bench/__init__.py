"""Benchmarks: `make bench` runs each module named bench_*.py and prints its figures as a table.

A module has a docstring of one line, the table's title. It has `measure()`, which yields its figures, or `tables()`,
which yields whole tables for comparisons.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    what: str
    value: float
    unit: str


@dataclass(frozen=True)
class Table:
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
