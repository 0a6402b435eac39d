"""Values that a program reports by a line of its output: `berth: progress=0.4 loss=1.2`. Pure.

A line may be anything: what is not understood is left out, and one line costs little, whatever stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

MARK = "berth:"
LONGEST_NAME = 64
LONGEST_LINE, MOST_OF_A_LINE = 4096, 64
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}", re.ASCII)
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
LONGEST_NUMBER = 40
PROGRESS, STEP = "progress", "step"
LARGEST_STEP = 2**53


@dataclass(frozen=True)
class Report:
    """Values of one moment. `progress`: part of the work that is done, from 0 to 1."""

    values: Mapping[str, float] = field(default_factory=dict)
    step: int | None = None
    progress: float | None = None

    @property
    def is_empty(self) -> bool:
        return not self.values and self.progress is None


def parse(text: str) -> Report | None:
    """Return what a line reports; None for a line that reports nothing.

    Programs that draw over a line send a carriage return before it, and loggers a prefix.
    """
    if MARK not in text:
        return None
    last = text[-LONGEST_LINE:].rpartition("\r")[2]
    before, mark, after = last.partition(MARK)
    if not mark or (before and before[-1].isalnum()):
        return None
    found: dict[str, float] = {}
    for token in after.split(None, MOST_OF_A_LINE)[:MOST_OF_A_LINE]:
        name, _, value = token.partition("=")
        number = number_of(value)
        if number is not None and NAME.fullmatch(name):
            found[name] = number
    report = report_of(found)
    return None if report.is_empty else report


def number_of(text: str) -> float | None:
    """Return a finite number; None for anything else."""
    text = text.rstrip(",;")
    if len(text) > LONGEST_NUMBER or not NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if isfinite(number) else None


def report_of(values: Mapping[str, float], step: int | None = None) -> Report:
    """Return the report of finite values by name: `progress` and `step` have a meaning of their own."""
    rest = dict(values)
    progress, of_values = rest.pop(PROGRESS, None), rest.pop(STEP, None)
    if step is None and of_values is not None and of_values.is_integer() and 0 <= of_values <= LARGEST_STEP:
        step = int(of_values)
    return Report(rest, step, progress if progress is not None and 0 <= progress <= 1 else None)
