"""Is a cluster fit for Berth? Looks, changes nothing, and says of everything that is missing what to do about it.

One module for each theme, and each gives findings; `examination` runs them all and asks the rooms above (`examined`).
The command and the page show the same.
"""

from __future__ import annotations

from .examination import examine
from .findings import Check, Finding, Level, by_check, named
from .isolation import isolation_gaps

__all__ = ["Check", "Finding", "Level", "by_check", "examine", "isolation_gaps", "named"]
