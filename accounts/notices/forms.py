"""Form of a person's notification preferences: a row per kind, a checkbox per way."""

from __future__ import annotations

from collections.abc import Mapping

from django import forms
from django.http import QueryDict

from accounts.notices.kinds import Kind, Ways


class WaysForm(forms.Form):
    in_berth = forms.BooleanField(required=False)
    by_mail = forms.BooleanField(required=False)


class KindsForm:
    """A small form for each kind."""

    def __init__(self, ways: Mapping[Kind, Ways], data: QueryDict | None = None) -> None:
        self.forms = {
            kind: WaysForm(data, prefix=str(kind), initial=wanted._asdict()) for kind, wanted in ways.items()
        }

    def wanted(self) -> dict[Kind, Ways]:
        """Return the chosen ways. A checkbox is always valid: not ticked means not wanted."""
        return {kind: Ways(**form.cleaned_data) for kind, form in self.forms.items() if form.is_valid()}
