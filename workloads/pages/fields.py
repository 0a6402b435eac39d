"""Fields of several forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext


class EnvironmentField(forms.CharField):
    """Field of NAME=value lines. Its first value may be the names and values themselves."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off"})
        super().__init__(required=False, widget=widget, strip=False, **options)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return "\n".join(f"{name}={text}" for name, text in value.items())
        return value

    def holds(self, values: Mapping[str, str]) -> bool:
        """Return False if a line could not say one of the values, as it has several lines itself."""
        try:
            return self.to_python(self.prepare_value(values)) == values
        except forms.ValidationError:
            return False

    def to_python(self, value: Any) -> dict[str, str]:  # type: ignore[override]
        if isinstance(value, Mapping):
            return dict(value)
        values: dict[str, str] = {}
        for number, line in enumerate(str(value or "").splitlines(), start=1):
            name, separator, text = line.partition("=")
            if not line.strip():
                continue
            if not separator:
                raise forms.ValidationError(
                    gettext("Line %(n)d has no “=”. Write NAME=value.") % {"n": number}
                )
            if name.strip() in values:
                raise forms.ValidationError(
                    gettext("Line %(n)d names a variable for the second time.") % {"n": number}
                )
            values[name.strip()] = text
        return values


def plain_text(**attributes: str) -> forms.TextInput:
    """Text input without completion and spell check, for names and addresses."""
    return forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", **attributes})
