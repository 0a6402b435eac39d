"""Memory and disks in GiB and CPUs in cores, on every page of the admin: columns count MiB and thousandths of a core.

What a column counts is the end of its name, so that no page names its units itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import Field, Model
from django.utils.functional import keep_lazy_text
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.text import in_gib

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

LONGEST_NUMBER = 40  # digits before and after the point: all that any column holds, exactly
UNIT_IN_LABEL = re.compile(r"\s*[(（]GiB[)）]")


class ScaledField(forms.DecimalField):
    """Number that is stored as whole smaller units. Its cleaned value is what is stored, of `least` to `most`."""

    per: ClassVar[int]  # smaller units in one that people use
    unit: ClassVar[str]
    not_whole: ClassVar[StrOrPromise]

    def __init__(self, *, least: int = 0, most: int, **options: Any) -> None:
        self.least, self.most = least, most
        super().__init__(**options)

    def prepare_value(self, value: Any) -> Any:
        """Return a stored value in the larger unit; what was typed stays."""
        return in_unit(value, self.per) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        number = super().clean(value)
        return None if number is None else self._stored(number)

    def _stored(self, number: Decimal) -> int:
        """Return the number in the smaller unit. Raise ValidationError if it is out of range, or between two."""
        with localcontext(prec=2 * LONGEST_NUMBER):
            if not Decimal(self.least) / self.per <= number <= Decimal(self.most) / self.per:
                words = {
                    "least": in_unit(self.least, self.per),
                    "most": self.most // self.per,
                    "unit": self.unit,
                }
                raise ValidationError(_("Use %(least)s to %(most)s %(unit)s.") % words, code="out_of_range")
            _sign, digits, exponent = number.as_tuple()
            is_short = (
                len(digits) <= LONGEST_NUMBER and isinstance(exponent, int) and -exponent <= LONGEST_NUMBER
            )
            stored = number * self.per if is_short else Decimal("NaN")
            if not is_short or stored != stored.to_integral_value():
                raise ValidationError(self.not_whole, code="not_whole")
        return int(stored)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.clean(data) != initial)
        except ValidationError:
            return True


class GibField(ScaledField):
    """Memory or disk, typed in GiB and stored in MiB."""

    per = 1024
    unit = "GiB"
    not_whole = gettext_lazy("Use a whole number of MiB: 0.5 GiB are 512 MiB, 0.25 GiB are 256 MiB.")


class CoresField(ScaledField):
    """CPU, typed in cores and stored in thousandths of one."""

    per = 1000
    unit = gettext_lazy("cores")  # type: ignore[assignment]
    not_whole = gettext_lazy("Use at most three digits after the point: 0.5, 1.25, 4.")


def in_unit(stored: int, per: int) -> str:
    """Return the amount in the larger unit, without zeros at its end: 1.5, 16."""
    with localcontext(prec=2 * LONGEST_NUMBER):
        return f"{(Decimal(stored) / per).normalize():f}"


FIELDS: dict[str, type[ScaledField]] = {"_mib": GibField, "_millicores": CoresField}


def field_class(name: str) -> type[ScaledField] | None:
    """Return the form field for a column of this name; None if it counts neither memory, disk nor CPU."""
    return next((kind for end, kind in FIELDS.items() if name.endswith(end)), None)


def amount_in_unit(name: str, stored: Any) -> Any:
    """Return what a column of this name holds, in the unit that people use. Other values stay as they are."""
    kind = field_class(name)
    return in_unit(stored, kind.per) if kind and isinstance(stored, int) else stored


def label_in_unit(label: str) -> str:
    """Return the label of a column with the unit that people use."""
    return _("CPU cores") if label == _("CPU (millicores)") else label.replace("MiB", "GiB")


def form_field(column: Field[Any, Any], **options: Any) -> forms.Field | None:
    """Return a form field in the unit that people use; None if the column's own is right."""
    kind = field_class(column.name)
    if kind is None:
        return None
    lows = [check.limit_value for check in column.validators if isinstance(check, MinValueValidator)]
    highs = [check.limit_value for check in column.validators if isinstance(check, MaxValueValidator)]
    default = {"initial": column.get_default()} if column.has_default() else {}
    given = {"required": not column.blank, "label": _capitalized(label_in_unit(str(column.verbose_name)))}
    common = {"help_text": column.help_text, **default, **given}
    bounds = {"least": max(lows), "most": min(highs)}
    return kind(**bounds, **common | {key: options[key] for key in ("help_text", "label") if key in options})


@keep_lazy_text
def without_unit(label: str) -> str:
    """Return the label of a column whose amounts say their unit themselves."""
    return UNIT_IN_LABEL.sub("", label_in_unit(label))


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


@cache
def shown(model: type[Model], name: Any) -> Any:
    """Return a column for lists and for pages to read: the amount with its unit. Other names stay as they are."""
    kind = field_class(name) if isinstance(name, str) else None
    try:
        column = model._meta.get_field(name) if kind else None
    except FieldDoesNotExist:
        column = None
    if kind is None or column is None:
        return name
    words: Callable[[int], str] = in_gib if kind is GibField else partial(in_unit, per=kind.per)

    def amount(obj: Model) -> str:
        value = getattr(obj, name)
        return "–" if value is None else words(value)

    amount.__name__ = name
    amount.short_description = without_unit(getattr(column, "verbose_name", name))  # type: ignore[attr-defined]
    amount.admin_order_field = name  # type: ignore[attr-defined]
    return amount


class InPeoplesUnits:
    """Part of an admin page or of its rows: fields and columns in GiB and cores."""

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: Any, **kwargs: Any) -> Any:
        own = super().formfield_for_dbfield  # type: ignore[misc]
        return form_field(db_field, **kwargs) or own(db_field, request, **kwargs)

    def get_list_display(self, request: Any) -> list[Any]:
        names = super().get_list_display(request)  # type: ignore[misc]
        page: Any = self
        return [name if name in page.list_editable else shown(page.model, name) for name in names]
