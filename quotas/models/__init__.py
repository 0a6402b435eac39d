"""Models: pools, flavors, quotas, budgets, bookings, and the claims on them."""

from .bookings import Booking
from .claims import MOST_MEMBERS, Claim, LedgerEntry, of_all_members
from .pools import Flavor, Pool, Sharing
from .shares import Budget, BudgetMonth, Quota, TenantLimit

__all__ = [
    "MOST_MEMBERS",
    "Booking",
    "Budget",
    "BudgetMonth",
    "Claim",
    "Flavor",
    "LedgerEntry",
    "Pool",
    "Quota",
    "Sharing",
    "TenantLimit",
    "of_all_members",
]
