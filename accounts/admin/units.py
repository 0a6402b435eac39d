"""Fields in the units that people use, for columns that count in smaller ones."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError


class ScaledField(forms.DecimalField):
    """Number that is stored as whole smaller units: `per` of them are one. Its cleaned value is what is stored."""

    def __init__(self, *, per: int, **options: Any) -> None:
        self.per = per
        super().__init__(**options)

    def prepare_value(self, value: Any) -> Any:
        """Return a stored value in the larger unit; what was typed stays."""
        return in_unit(value, self.per) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        number = super().clean(value)
        return None if number is None else round(number * self.per)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.clean(data) != initial)
        except ValidationError:
            return True


def in_unit(stored: int, per: int) -> str:
    """Return the amount in the larger unit, without zeros at its end: 1.5, 16."""
    return f"{(Decimal(stored) / per).normalize():f}"
