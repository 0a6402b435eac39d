"""Form fields of every admin page and of the rows on it, as people need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.widgets import AdminSplitDateTime, AutocompleteSelect
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from accounts.admin.units import InPeoplesUnits


class Completing(AutocompleteSelect):
    """Field that completes what is typed. A value that is no key at all is shown as none, with the form's error."""

    def optgroups(self, name: str, value: Sequence[str], attrs: dict[str, Any] | None = None) -> Any:
        return super().optgroups(name, [one for one in value if self._may_be_key(one)], attrs)

    def _may_be_key(self, value: str) -> bool:
        try:
            self.field.target_field.to_python(value)
        except ValidationError:
            return False
        return "\0" not in str(value)


class OwnFields(InPeoplesUnits):
    """Part of an admin page or of its rows: units of people, a name for each field, and no failure on bad values."""

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Name the two fields of a time as well: their one label names neither."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        widget = getattr(field, "widget", None)
        if isinstance(widget, AdminSplitDateTime):
            for part, what in zip(widget.widgets, (_("Date"), _("Time")), strict=True):
                part.attrs["aria-label"] = f"{field.label}: {what}"
        return field

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        page: Any = self
        if db_field.name in page.get_autocomplete_fields(request):
            kwargs.setdefault("widget", Completing(db_field, page.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]
