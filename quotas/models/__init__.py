"""Models: pools, flavors, quotas, budgets, bookings, and the claims on them."""

from .bookings import Booking
from .claims import Claim, LedgerEntry
from .pools import Flavor, Pool, Sharing
from .shares import Budget, BudgetMonth, Quota, TenantLimit

__all__ = [
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
]
