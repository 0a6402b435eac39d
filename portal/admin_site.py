from django.contrib.admin import AdminSite
from django.utils.translation import gettext_lazy as _


class BerthAdminSite(AdminSite):
    site_header = _("Berth administration")
    site_title = _("Berth")
    index_title = _("Pools, quotas and people")
