"""Doctor checks whether a cluster is fit for Berth. It changes nothing, and says how to fix what is missing.

One module per theme yields findings; `examination` runs all of them, and what the rooms above registered.
The command and the admin page show the same.
"""

from __future__ import annotations

from .examination import examine
from .findings import Check, Finding, Level, by_check, named

__all__ = ["Check", "Finding", "Level", "by_check", "examine", "named"]
