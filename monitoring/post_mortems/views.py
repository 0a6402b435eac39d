"""Pages of post-mortems: the list, and one record with its notes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from accounts.access import Actor
from accounts.errors import SHOWN_IN_PLACE
from accounts.forms import show_refusal
from accounts.rest.actors import actor_of
from accounts.rest.pagination import KeysetPagination
from accounts.tenancy import current_tenant
from accounts.trail import audit
from monitoring.models import PostMortem
from monitoring.models.post_mortems import LONGEST_NOTE

from . import access, notes, words
from .groups import Group, seen_by
from .representation import brief, whole
from .timeline import timeline

Happened = PostMortem.Happened
LISTS = ("mine", "everyone")
# The word of a workspace's status that looks like it.
LOOKS = {
    Happened.FAILED: "failed", Happened.EVICTED: "stopped", Happened.INTERRUPTED: "stopped",
    Happened.RESTARTED: "stopped", Happened.REJECTED: "stopped", Happened.LOST: "unknown",
}  # fmt: skip
TIMES = {
    "day": (timedelta(days=1), gettext_lazy("Last day")),
    "week": (timedelta(days=7), gettext_lazy("Last week")),
    "month": (timedelta(days=30), gettext_lazy("Last 30 days")),
}
MOST_VERDICTS = 60
ANY = ("", gettext_lazy("Any"))


class FilterForm(forms.Form):
    search = forms.CharField(label=gettext_lazy("Search"), required=False, max_length=120)
    node = forms.CharField(label=gettext_lazy("Node"), required=False, max_length=253)
    owner = forms.CharField(label=gettext_lazy("Owner"), required=False, max_length=150)
    verdict = forms.ChoiceField(label=gettext_lazy("Cause"), required=False)
    happened = forms.ChoiceField(
        label=gettext_lazy("What happened"), required=False, choices=[ANY, *Happened.choices]
    )
    within = forms.ChoiceField(
        label=gettext_lazy("Time"),
        required=False,
        choices=[("", gettext_lazy("Any time")), *((name, label) for name, (_span, label) in TIMES.items())],
    )

    def __init__(self, data: Any, verdicts: list[str]) -> None:
        super().__init__(data)
        choices = sorted((words.label(code), code) for code in verdicts)
        field = self.fields["verdict"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [ANY, *((code, label) for label, code in choices)]

    def matching(self) -> Q:
        data = self.cleaned_data
        found = Q()
        if text := data["search"]:
            found &= Q(name__icontains=text)
        if data["owner"]:
            found &= Q(owner__username__iexact=data["owner"])
        if data["within"]:
            found &= Q(ended_at__gt=timezone.now() - TIMES[data["within"]][0])
        exact = {name: data[name] for name in ("node", "verdict", "happened") if data[name]}
        return found & Q(**exact)


class NoteForm(forms.Form):
    text = forms.CharField(
        label=gettext_lazy("Note"),
        max_length=LONGEST_NOTE,
        widget=forms.Textarea({"rows": 3}),
        help_text=gettext_lazy("Whoever may see this page reads it."),
    )


class Newest:
    keyset = ("-ended_at", "-id")


@never_cache
@login_required
@require_GET
def records(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    shown = request.GET.get("show", "")
    shown = shown if shown in LISTS else LISTS[0]
    rows = access.visible(actor)
    if shown == "mine":
        rows = rows.filter(owner=actor.user)
    if chosen := current_tenant(request):
        rows = rows.filter(tenant=chosen)
    verdicts = rows.exclude(verdict="").order_by("verdict").values_list("verdict", flat=True).distinct()
    form = FilterForm(request.GET, list(verdicts[:MOST_VERDICTS]))
    is_valid = form.is_valid()
    rows = rows.filter(form.matching()) if is_valid else rows.none()
    pages = KeysetPagination()
    try:
        found = rows.select_related(*access.RELATED).defer("lines")
        page = pages.paginate_queryset(found, Request(request), Newest())
    except ValidationError:  # an address that was cut or made up
        return redirect("post-mortems")
    context = {
        "section": "post-mortems",
        "show": shown,
        "form": form,
        "is_filtered": any(request.GET.get(name) for name in form.fields),
        "rows": [(row, brief(row), LOOKS[Happened(row.happened)]) for row in page],
        "groups": described(actor) if shown == "everyone" else [],
        "following": pages.following,
        "is_later": "cursor" in request.GET,
    }
    return render(request, "monitoring/post_mortems.html", context, status=200 if is_valid else 422)


def described(actor: Actor) -> list[tuple[Group, str, str]]:
    """Return the groups of runs that are alike, with their words."""
    return [(group, *words.of_group(group.code, group.data)) for group in seen_by(actor)]


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def record(request: HttpRequest, id: UUID) -> HttpResponse:
    """Show a record. Who may note something on it does so here."""
    actor = actor_of(request)
    found = access.get(actor, id)
    form, status = NoteForm(request.POST or None), 200
    if request.method == "POST":
        access.require_note(actor, found)
        status = 422
        if form.is_valid():
            try:
                notes.add(actor, found, form.cleaned_data["text"])
            except SHOWN_IN_PLACE as refusal:
                audit.record_refusal(request, actor, refusal)
                show_refusal(form, refusal, lambda name: name)
            else:
                messages.success(request, _("The note was added."))
                return redirect("post-mortem", id)
    shown = whole(found, actor)
    context = {
        "section": "post-mortems",
        "record": found,
        "shown": shown,
        "look": LOOKS[Happened(found.happened)],
        "took": found.ended_at - found.started_at if found.started_at else None,
        "timeline": timeline(shown),
        "alike": [(one, LOOKS[Happened(one["happened"])]) for one in shown["alike"]],
        "form": form if access.reads_log(actor, found) else None,
    }
    return render(request, "monitoring/post_mortem.html", context, status=status)
