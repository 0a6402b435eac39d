"""Labels for form fields in a table: screen readers read the column's name and the row's name."""

from __future__ import annotations

from typing import Any

from django.forms import BaseInlineFormSet, BaseModelFormSet


class _Labels:
    def add_fields(self, form: Any, index: Any) -> None:
        super().add_fields(form, index)  # type: ignore[misc]
        row = f": {form.instance}" if form.instance.pk else ""
        for field in form.fields.values():
            widget = getattr(field.widget, "widget", field.widget)  # the admin wraps some widgets
            widget.attrs.setdefault("aria-label", f"{field.label or ''}{row}")


class LabelledRows(_Labels, BaseModelFormSet):  # type: ignore[type-arg]
    """Rows of a list that is edited in place."""


class LabelledInlineRows(_Labels, BaseInlineFormSet):  # type: ignore[type-arg]
    """Related rows on an object's page."""
