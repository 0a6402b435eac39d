"""Where admins set pools, quotas and limits, with what is used right now beside each."""

from quotas.admin import pools, quotas

__all__ = ["pools", "quotas"]
