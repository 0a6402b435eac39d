"""Number of database queries."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.test.utils import CaptureQueriesContext


def queries(do: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        do()
    return len(captured)
