"""The pages of the admin that tell of one thing what every room holds of it: people, tenants, claims."""

from portal.admin import claims, others, people, tenants

__all__ = ["claims", "others", "people", "tenants"]
