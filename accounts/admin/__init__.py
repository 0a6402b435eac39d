"""What the admin of every room is made of, and the pages for keys, tokens and the trail.

People and tenants have their pages in portal/admin: they tell of what every room holds of them.
"""

from accounts.admin import credentials, trail
from accounts.notices import admin as notices

__all__ = ["credentials", "notices", "trail"]
