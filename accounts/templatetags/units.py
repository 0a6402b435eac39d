"""Template filter for labels of columns that count memory, disks and CPUs."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.safestring import SafeString

from accounts.admin.units import label_in_unit

register = template.Library()


@register.filter
def in_unit(label: Any) -> Any:
    """Return the label with the unit of its field: GiB, cores. HTML stays."""
    return label if isinstance(label, SafeString) else label_in_unit(str(label))
