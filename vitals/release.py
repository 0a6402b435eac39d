"""Releases of Berth, and which of them may work on one database during an upgrade.

`manage.py migrate` writes its release into the database, and the oldest one whose code works on the tables that it
left. Code of a release that is older than that neither starts nor gets requests (“A migration” in CONTRIBUTING.md).
"""

from __future__ import annotations

RELEASE = 1
"""Number of this release: one more than the last. The chart's appVersion says the same."""
OLDEST = 1
"""Oldest release that works on this release's tables: the one before, once there is one."""


def too_old(oldest: int) -> str:
    """Return why this release may not work on a database that takes `oldest` or a newer one; empty if it may."""
    if oldest <= RELEASE:
        return ""
    return f"the database takes release {oldest} of Berth or a newer one, and this is release {RELEASE}: install that"
