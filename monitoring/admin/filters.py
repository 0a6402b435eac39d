"""Filter for lists of problems: rows that are open now, unless another state is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class OpenFirst(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"
    is_open: ClassVar[Q]
    others: ClassVar[Mapping[str, tuple[StrOrPromise, Q]]]

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, StrOrPromise]]:
        return [(name, words) for name, (words, _rows) in self.others.items()]

    def choices(self, changelist: Any) -> Any:
        everything, *others = super().choices(changelist)
        yield {**everything, "display": _("open")}
        yield from others

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        if request.method == "POST":
            return rows  # an action on chosen rows, in whatever state they are
        _words, wanted = self.others.get(self.value() or "", ("", self.is_open))
        return rows.filter(wanted)
