"""Figures and times as the API writes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def number(value: float) -> int | float:
    """Return whole numbers as int: 2 rather than 2.0."""
    return int(value) if float(value).is_integer() else value


def exposition(at: Any) -> dict[str, Any] | None:
    """Return where a workload serves figures, as the API shows it."""
    return None if at is None else {"port": at.port, "path": at.path}


def moment(at: Any) -> Any:
    """Time as RFC 3339 in UTC; other values as they are."""
    return at.isoformat().replace("+00:00", "Z") if isinstance(at, datetime) else at
