"""What a sync of the directory will do, and when it is due. Pure: rows and answers in, a plan out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from accounts.models import User
from accounts.sign_on import groups
from accounts.sign_on.admission import differs
from accounts.sign_on.configuration import Source

# More people than both at once are a mistake in the directory or the settings, rather than people who left.
MOST_LEAVING = 5
MOST_LEAVING_PERCENT = 20
# Every night at this hour, UTC; a failed run is tried again after so long.
HOUR = 2
AGAIN_AFTER = timedelta(hours=1)


@dataclass(frozen=True)
class Plan:
    leaving: list[User]
    returning: list[User]
    changing: list[User]
    losing_roles: int
    active: int

    @property
    def is_too_much(self) -> bool:
        """Return True if so many would leave, or lose all that groups gave them, that an admin has to look first."""
        losing = len(self.leaving) + self.losing_roles
        return losing > MOST_LEAVING and losing * 100 > self.active * MOST_LEAVING_PERCENT


def plan(
    accounts: Mapping[str, User],
    present: Mapping[str, dict[str, Any]],
    directory: Source,
    tenants: Collection[str],
) -> Plan:
    """Compare accounts with what the directory says of people who are there, both by subject."""
    leaving, returning, changing, losing = [], [], [], 0
    for subject, user in accounts.items():
        told = present.get(subject)
        if told is None:
            if user.is_active:
                leaving.append(user)
        elif not user.is_active:
            if user.left_directory_at is not None:
                returning.append(user)
        elif differs(user, directory, told, tenants):
            changing.append(user)
            losing += groups.loses_all(user, groups.groups_in(told, directory.groups_claim), directory.grants)
    active = sum(user.is_active for user in accounts.values())
    return Plan(leaving, returning, changing, losing, active)


def is_due(now: datetime, tried_at: datetime | None, settled_at: datetime | None) -> bool:
    """Return True if no run has been settled since last night's hour, and none was tried within an hour."""
    night = now.replace(hour=HOUR, minute=0, second=0, microsecond=0)
    if night > now:
        night -= timedelta(days=1)
    is_settled = settled_at is not None and settled_at >= night
    return not is_settled and (tried_at is None or now - tried_at >= AGAIN_AFTER)
