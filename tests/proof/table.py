"""Table of the proof's findings, one row per case, printed at the end of the run.

A test adds a row with `found(case, outcome)`. The row travels with the test's report, also from other processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from _pytest.reports import TestReport

PROPERTY = "found"


class Row(NamedTuple):
    case: str
    outcome: str  # held or FAILED, as the whole test
    found: str
    seconds: float


def rows(reports: Iterable[TestReport]) -> Iterator[Row]:
    for report in reports:
        for name, value in report.user_properties:
            if name == PROPERTY and report.when == "call":
                case, found = cast("tuple[str, str]", value)
                yield Row(case, "held" if report.passed else "FAILED", found, report.duration)


def lines(found: Iterable[Row]) -> Iterator[str]:
    listed = sorted(found)
    if not listed:
        return
    width = max(len(row.case) for row in listed)
    for row in listed:
        yield f"{row.outcome:6}  {row.case:{width}}  {row.seconds:6.1f} s  {row.found}"
    held = sum(row.outcome == "held" for row in listed)
    yield f"{held} of {len(listed)} cases held"
