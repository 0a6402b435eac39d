"""Lists of workspaces and of jobs: whose rows, the filter above them, their order, and actions on several at once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from django import forms
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.request import Request

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.rest.actors import actor_of
from accounts.rest.pagination import KeysetPagination
from accounts.targets import safe_target
from accounts.tenancy import current_tenant
from workloads.models import ORDERINGS, SEARCHED, Workload

LISTS = ("mine", "everyone", "deleted")
SORTS = dict(
    zip(
        ORDERINGS,
        [
            gettext_lazy("Newest first"),
            gettext_lazy("Oldest first"),
            gettext_lazy("Last changed first"),
            gettext_lazy("Name"),
        ],
        strict=True,
    )
)
FILTERS = ("search", "owner", "phase")
MOST_WORDS = 8  # of a search, as in the API
MOST_AT_ONCE = 100
Row = TypeVar("Row", bound=Workload)


class FilterForm(forms.Form):
    search = forms.CharField(
        label=gettext_lazy("Search"),
        required=False,
        max_length=120,
        widget=forms.TextInput({"type": "search", "autocomplete": "off"}),
    )
    owner = forms.CharField(
        label=gettext_lazy("Owner"),
        required=False,
        max_length=150,
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    phase = forms.ChoiceField(label=gettext_lazy("Status"), required=False)
    sort = forms.ChoiceField(label=gettext_lazy("Sort"), required=False, choices=[*SORTS.items()])

    def __init__(
        self, data: Mapping[str, Any], phases: Iterable[tuple[str, Any]], searched: Sequence[str]
    ) -> None:
        super().__init__(data)
        self.searched = searched
        phase = self.fields["phase"]
        assert isinstance(phase, forms.ChoiceField)
        phase.choices = [("", gettext_lazy("Any")), *phases]

    def matching(self) -> Q:
        """Condition of the rows that the filter leaves; none if it cannot be read."""
        if not self.is_valid():
            return Q(pk__in=[])
        data, found = self.cleaned_data, Q()
        for word in data["search"].split()[:MOST_WORDS]:
            found &= Q(*((f"{column}__icontains", word) for column in self.searched), _connector=Q.OR)
        if data["owner"]:
            found &= Q(owner__username__iexact=data["owner"])
        if data["phase"]:
            found &= Q(phase=data["phase"])
        return found

    @property
    def keyset(self) -> tuple[str, str]:
        """Order of the rows, as `KeysetPagination` takes it from a view."""
        column = (self.is_valid() and self.cleaned_data["sort"]) or "-created_at"
        return column, "-id" if column.startswith("-") else "id"


@dataclass(frozen=True)
class Listed(Generic[Row]):
    """One page of a list, with what the address asked for."""

    rows: list[Row]
    context: dict[str, Any]

    @property
    def status(self) -> int:
        return 200 if self.context["form"].is_valid() else 422


def listed(
    request: HttpRequest,
    visible: QuerySet[Row],
    related: Callable[[QuerySet[Row]], QuerySet[Row]],
    phases: Sequence[tuple[str, Any]],
    searched: Sequence[str] = SEARCHED,
    more: Mapping[str, Q] | None = None,
) -> Listed[Row]:
    """Return the page of rows that the address asks for. Raise ValidationError for a cursor that was made up.

    `more`: conditions of further lists than LISTS, by name.
    """
    show, more = request.GET.get("show", ""), more or {}
    show = show if show in (*LISTS, *more) else LISTS[0]
    rows = visible.filter(deleted_at__isnull=show != "deleted")
    if show in more:
        rows = rows.filter(more[show])
    elif show != "everyone":
        rows = rows.filter(owner=actor_of(request).user)
        searched = [column for column in searched if not column.startswith("owner")]
    if chosen := current_tenant(request):
        rows = rows.filter(tenant=chosen)
    form, pages = FilterForm(request.GET, phases, searched), KeysetPagination()
    page = pages.paginate_queryset(related(rows.filter(form.matching())), Request(request), form)
    context = {
        "show": show,
        "chosen": chosen,
        "form": form,
        "is_filtered": any(request.GET.get(name) for name in FILTERS),
        "following": pages.following,
        "is_later": "cursor" in request.GET,
    }
    return Listed(page, context)


def uuids(texts: Iterable[str]) -> list[uuid.UUID]:
    """Return the ids among these texts."""
    found = []
    for text in texts:
        try:
            found.append(uuid.UUID(text))
        except ValueError:
            continue
    return found


@dataclass(frozen=True)
class Bulk(Generic[Row]):
    """Actions on the selected rows of a list. What loses something is asked about first, on a page of its own."""

    section: str
    visible: Callable[[Actor], QuerySet[Row]]
    actions: Mapping[str, Callable[[Actor, Row], bool]]
    asked_first: Sequence[str]
    # Sentences about the number of rows that changed, and about none selected.
    changed: Callable[[int], str]
    none: Any
    # Further context of the question, from the rows.
    more: Callable[[list[Row]], dict[str, Any]] = field(default=lambda rows: {})

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer the form below the list, and the question."""
        actor, verb = actor_of(request), request.POST.get("verb", "")
        if verb not in self.actions:
            raise Http404
        back = safe_target(request) if "next" in request.POST else reverse(self.section)
        rows = self._chosen(actor, request.POST.getlist("chosen"))
        if not rows:
            messages.warning(request, self.none)
        elif verb in self.asked_first and "sure" not in request.POST:
            context = {"section": self.section, "rows": rows, "verb": verb, "back": back} | self.more(rows)
            return render(request, f"{self.section}/bulk.html", context)
        else:
            self._report(request, *self._do(actor, verb, rows), len(rows))
        return redirect(back)

    def _chosen(self, actor: Actor, texts: list[str]) -> list[Row]:
        rows = self.visible(actor).filter(pk__in=uuids(texts[:MOST_AT_ONCE]), deleted_at__isnull=True)
        return list(rows.order_by("-created_at"))

    def _do(self, actor: Actor, verb: str, rows: list[Row]) -> tuple[int, list[str]]:
        """Return the number of rows that changed, and why others were refused."""
        changed, refused = 0, []
        for row in rows:
            try:
                changed += self.actions[verb](actor, row)
            except Refusal as refusal:
                refused.append(f"{row.name}: {refusal.message}")
        return changed, refused

    def _report(self, request: HttpRequest, changed: int, refused: list[str], asked: int) -> None:
        if changed:
            messages.success(request, self.changed(changed))
        if refused:
            messages.error(request, " ".join(refused[:3]))
        if asked > changed + len(refused):
            messages.info(request, _("Nothing had to be changed for the others."))
