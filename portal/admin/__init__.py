"""Admin pages that show what every room holds of an object: people, tenants, claims."""

from portal.admin import claims, others, people, tenants

__all__ = ["claims", "others", "people", "tenants"]
