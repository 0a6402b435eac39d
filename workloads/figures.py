"""Figures and times as the API writes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def number(value: float) -> int | float:
    """Return whole numbers as int: 2 rather than 2.0."""
    return int(value) if float(value).is_integer() else value


def moment(at: Any) -> Any:
    """Time as RFC 3339 in UTC; other values as they are."""
    return at.isoformat().replace("+00:00", "Z") if isinstance(at, datetime) else at
