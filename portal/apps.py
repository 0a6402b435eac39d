from django.apps import AppConfig
from django.contrib.admin import apps as admin


class PortalConfig(AppConfig):
    name = "portal"
    default = True


class PortalAdminConfig(admin.AdminConfig):
    """Django admin under Berth's name and templates."""

    default = False
    default_site = "portal.admin_site.BerthAdminSite"
