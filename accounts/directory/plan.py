"""Plan of a sync of the directory, and when it is due. Pure: rows and answers in, a plan out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

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
    no_admin_stays: bool = False

    @property
    def is_too_much(self) -> bool:
        """Return True if so many would leave, or lose all that groups gave them, that an admin has to look first; also
        if all would leave, or every admin."""
        losing = len(self.leaving) + self.losing_roles
        are_many = losing > MOST_LEAVING and losing * 100 > self.active * MOST_LEAVING_PERCENT
        return are_many or self.no_admin_stays or len(self.leaving) == self.active > 1


def plan(
    accounts: Mapping[str, User],
    present: Mapping[str, dict[str, Any]],
    directory: Source,
    tenants: Collection[str],
    admins: Set[UUID],
) -> Plan:
    """Compare accounts with what the directory says of people who are there, both by subject. `admins`: all active ones
    that there are, whether they come from the directory or not."""
    leaving, returning, changing, losing = [], [], [], 0
    no_admins = set()
    for subject, user in accounts.items():
        told = present.get(subject)
        if told is None:
            if user.is_active:
                leaving.append(user)
                no_admins.add(user.pk)
        elif not user.is_active:
            if user.left_directory_at is not None:
                returning.append(user)
        elif differs(user, directory, told, tenants):
            changing.append(user)
            theirs = groups.groups_in(told, directory.groups_claim)
            losing += groups.loses_all(user, theirs, directory.grants)
            if user.staff_by_group and not groups.is_admin(theirs, directory.grants):
                no_admins.add(user.pk)
    active = sum(user.is_active for user in accounts.values())
    no_admin_stays = not admins.isdisjoint(no_admins) and admins <= no_admins
    return Plan(leaving, returning, changing, losing, active, no_admin_stays)


def is_due(now: datetime, tried_at: datetime | None, settled_at: datetime | None) -> bool:
    """Return True if no run has been settled since last night's hour, and none was tried within an hour."""
    night = now.replace(hour=HOUR, minute=0, second=0, microsecond=0)
    if night > now:
        night -= timedelta(days=1)
    is_settled = settled_at is not None and settled_at >= night
    return not is_settled and (tried_at is None or now - tried_at >= AGAIN_AFTER)
