"""Where admins set pools, quotas and limits, with what is used right now beside each."""

from quotas.admin import bookings, budgets, pools, quotas

__all__ = ["bookings", "budgets", "pools", "quotas"]
