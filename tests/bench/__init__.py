"""Benchmarks: `make bench` runs each module named bench_*.py and prints its figures as a table.

A module has a docstring of one line, which is the table's title, and `measure()`, which yields its figures.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    what: str
    value: float
    unit: str
