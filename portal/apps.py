from django.apps import AppConfig
from django.contrib.admin import apps as admin


class PortalConfig(AppConfig):
    name = "portal"
    default = True

    def ready(self) -> None:
        """What the rooms' lowest needs of one above it."""
        from accounts import sessions
        from accounts.notices import outbox
        from clusters.signals import tick

        tick.connect(outbox.on_tick)
        tick.connect(sessions.forget_expired)


class PortalAdminConfig(admin.AdminConfig):
    """Django admin under Berth's name and templates."""

    default = False
    default_site = "portal.admin_site.BerthAdminSite"
