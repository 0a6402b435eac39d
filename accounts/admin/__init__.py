"""Building blocks for the admin of every room, and the admin pages for keys, tokens and the trail.

Pages of people and tenants are in portal/admin, because they show data of every room.
"""

from accounts.admin import credentials, service_accounts, trail
from accounts.announcements import admin as announcements
from accounts.notices import admin as notices

__all__ = ["announcements", "credentials", "notices", "service_accounts", "trail"]
