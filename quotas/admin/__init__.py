"""Where admins set pools, quotas and limits, with what is used right now beside each."""

from quotas.admin import budgets, pools, quotas

__all__ = ["budgets", "pools", "quotas"]
