"""Sample of a long table of cases for `make test-slow`; `make test-long` runs the rest."""

from collections.abc import Mapping
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def sampled(cases: Mapping[str, tuple[Any, ...]], every: int) -> list[ParameterSet]:
    """Return pytest's parameters by name; all but the first of each `every` cases are marked long."""
    return [
        pytest.param(*values, id=name, marks=[pytest.mark.long] if number % every else [])
        for number, (name, values) in enumerate(cases.items())
    ]


def rare(*values: Any) -> ParameterSet:
    """Return a parameter that `make test-long` alone runs."""
    return pytest.param(*values, marks=pytest.mark.long)
