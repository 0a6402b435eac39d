"""Words of the audit trail about quotas, budgets, pools and bookings."""

from django.utils.translation import gettext_lazy as _

KINDS = {
    "quota": _("Quotas"),
    "budget": _("Budgets"),
    "pool": _("Pools"),
    "booking": _("Bookings"),
}

DONE = {
    "quota.change": _("%(actor)s changed the quota “%(name)s”."),
    "quota.create": _("%(actor)s added the quota “%(name)s”."),
    "quota.delete": _("%(actor)s removed the quota “%(name)s”."),
    "budget.create": _("%(actor)s added the budget “%(name)s”."),
    "budget.change": _("%(actor)s changed the budget “%(name)s”."),
    "budget.delete": _("%(actor)s removed the budget “%(name)s”."),
    "budget.add_hours": _("%(actor)s added %(gpu_hours)s GPU-hours to the budget “%(name)s”."),
    "pool.open": _("%(actor)s put the pool “%(name)s” into use."),
    "pool.close": _("%(actor)s took the pool “%(name)s” out of use."),
    "booking.create": _("%(actor)s booked GPUs of %(pool)s: “%(name)s”."),
    "booking.change": _("%(actor)s changed the booking “%(name)s” of GPUs of %(pool)s."),
    "booking.cancel": _("%(actor)s cancelled the booking “%(name)s” of GPUs of %(pool)s."),
    "pool.create": _("%(actor)s created the pool “%(name)s”."),
    "pool.change": _("%(actor)s changed the pool “%(name)s”."),
    "claim.confirm_end": _("%(actor)s confirmed that what ran on %(node)s has ended."),
}
