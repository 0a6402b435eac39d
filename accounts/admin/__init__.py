"""What the admin of every room is made of, and the pages for keys, tokens and the trail.

People and tenants have their pages in portal/admin: they tell of what every room holds of them.
"""

from accounts.admin import credentials, trail

__all__ = ["credentials", "trail"]
