"""Verdict on a run of a suite: which red tests count, and whether it kept its budget."""

from collections.abc import Mapping
from typing import NamedTuple

MOST_FLAKY = 3
MOST_TRIED_AGAIN = 12
"""With more red tests than these, the change is at fault; trying again would only take time."""
OVER_BUDGET = 1.5


class Verdict(NamedTuple):
    flaky: tuple[str, ...] = ()
    """Tests that were red once and green when run again alone."""
    faults: tuple[str, ...] = ()
    """Reasons why the run fails, one sentence each."""


def judge(
    second: Mapping[str, bool], *, red: int, seconds: float, budget: float | None, pace: float
) -> Verdict:
    """Judge a run with `red` red tests, of which `second` says whether each was green when run again."""
    flaky = tuple(sorted(test for test, green in second.items() if green))
    faults = []
    if red > len(flaky):
        faults.append(f"{red - len(flaky)} red" + (" twice" if second else f", too many to try again: {red}"))
    if len(flaky) > MOST_FLAKY:
        faults.append(f"{len(flaky)} flaky tests; at most {MOST_FLAKY} are let pass")
    if budget and seconds > allowed(budget, pace):
        faults.append(
            f"took {clock(seconds)}, more than {OVER_BUDGET:g} times its budget at this machine's pace"
        )
    return Verdict(flaky, tuple(faults))


def allowed(budget: float, pace: float) -> float:
    """Return the seconds after which a suite fails. A machine faster than the reference gets the same time."""
    return OVER_BUDGET * budget * max(1.0, pace)


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, such as 4:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
