from django.contrib.admin.apps import AdminConfig


class PortalAdminConfig(AdminConfig):
    """Django admin under Berth's name and templates."""

    default_site = "portal.admin_site.BerthAdminSite"
