"""What runs in a workspace for a person, as the workspace itself answers (start/status.sh, start/berth_status.py).

Whoever may use the workspace could answer anything, so an answer is short, checked, and believed about itself alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 4096
MOST_SECONDS = 5.0
LONGEST_AGE_SECONDS = 10 * 365 * 24 * 3600


@dataclass(frozen=True)
class Inside:
    """Numbers of what is busy. `kernels`: None where no Jupyter was asked. `keep_alive_seconds`: age of the newest
    keep-alive; below zero: it lies in the future."""

    kernels: int | None
    terminals: int
    ssh: int
    keep_alive_seconds: int | None


def parse(body: bytes, *, of_jupyter: bool) -> Inside | None:
    """Return what an answer says; None if it is none."""
    try:
        told = json.loads(body)
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    counts = [told.get(name) for name in ("terminals", "ssh", *(["kernels"] if of_jupyter else []))]
    age = told.get("keep_alive_seconds")
    if not all(_is_count(count) for count in counts) or not (age is None or _is_age(age)):
        return None
    return Inside(told["kernels"] if of_jupyter else None, told["terminals"], told["ssh"], age)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_age(value: Any) -> bool:
    return type(value) is int and abs(value) <= LONGEST_AGE_SECONDS
