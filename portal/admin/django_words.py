"""Sentences of Django's admin whose Chinese or Korean is poor, listed so that Berth's catalogues override them.

Catalogues in LOCALE_PATHS win over Django's. Nothing imports this module: `portal.translations` extracts from it.
"""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

OVERRIDDEN = (
    _("Add %(name)s"),
    _("Add %s"),
    _("Change %s"),
    _("View %s"),
    _("Change history: %s"),
    _("Add another %(verbose_name)s"),
    _("Add another %(model)s"),
    _("Change selected %(model)s"),
    _("Delete selected %(model)s"),
    _("View selected %(model)s"),
    _("Delete selected %(verbose_name_plural)s"),
    _("Successfully deleted %(count)d %(items)s."),
    _("Cannot delete %(name)s"),
    _("%(total_count)s selected"),
    _("0 of %(cnt)s selected"),
    _("Select all %(total_count)s %(module_name)s"),
    _("%(name)s with ID “%(key)s” doesn’t exist. Perhaps it was deleted?"),
    _("The %(name)s “%(obj)s” was deleted successfully."),
    _("The {name} “{obj}” was added successfully."),
    _("The {name} “{obj}” was added successfully. You may add another {name} below."),
    _("The {name} “{obj}” was changed successfully."),
    _("The {name} “{obj}” was changed successfully. You may add another {name} below."),
    _("The {name} “{obj}” was changed successfully. You may edit it again below."),
    _("Items must be selected in order to perform actions on them. No items have been changed."),
    _("No action selected."),
    _("Run the selected action"),
    _("Action:"),
)
