"""Admin pages of pools, quotas, limits, budgets and bookings, with the current use beside each."""

from quotas.admin import bookings, budgets, pools, quotas

__all__ = ["bookings", "budgets", "pools", "quotas"]
