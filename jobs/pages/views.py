"""List of jobs, and actions on several of them at once."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.rest.actors import actor_of
from accounts.rest.pagination import KeysetPagination
from accounts.targets import safe_target
from accounts.tenancy import current_tenant
from jobs import access
from jobs.api.representation import in_brief, with_related
from jobs.models import Job, Phase
from workloads.sizes.choices import launch_tenants

from .forms_connected import uuids
from .views_job import ACTIONS, ASKED_FIRST

LISTS = ("mine", "everyone", "deleted")
SORTS = {
    "-created_at": gettext_lazy("Newest first"),
    "created_at": gettext_lazy("Oldest first"),
    "-changed_at": gettext_lazy("Last changed first"),
    "name": gettext_lazy("Name"),
}
MOST_AT_ONCE = 100
BULK = ("cancel", "retry-failed", "delete")


class FilterForm(forms.Form):
    search = forms.CharField(label=gettext_lazy("Search"), required=False, max_length=120)
    owner = forms.CharField(
        label=gettext_lazy("Owner"),
        required=False,
        max_length=150,
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    phase = forms.ChoiceField(
        label=gettext_lazy("Status"), required=False, choices=[("", gettext_lazy("Any")), *Phase.choices]
    )
    sort = forms.ChoiceField(label=gettext_lazy("Sort"), required=False, choices=[*SORTS.items()])

    def matching(self) -> Q:
        data = self.cleaned_data
        found = Q()
        if text := data.get("search"):
            found &= Q(name__icontains=text) | Q(image__slug__icontains=text)
        if data.get("owner"):
            found &= Q(owner__username__iexact=data["owner"])
        if data.get("phase"):
            found &= Q(phase=data["phase"])
        return found


class Sorted:
    """Order of a list, as `KeysetPagination` takes it from a view."""

    def __init__(self, column: str) -> None:
        self.keyset = (column, "-id" if column.startswith("-") else "id")


@never_cache
@login_required
@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    shown = request.GET.get("show", "")
    shown = shown if shown in LISTS else LISTS[0]
    rows = access.visible(actor).filter(deleted_at__isnull=shown != "deleted")
    if shown != "everyone":
        rows = rows.filter(owner=actor.user)
    if chosen := current_tenant(request):
        rows = rows.filter(tenant=chosen)
    form = FilterForm(request.GET)
    is_valid = form.is_valid()
    rows = rows.filter(form.matching()) if is_valid else rows.none()
    pages = KeysetPagination()
    try:
        order = Sorted((is_valid and form.cleaned_data["sort"]) or "-created_at")
        page = pages.paginate_queryset(with_related(rows), Request(request), order)
    except ValidationError:  # an address that was cut or made up
        return redirect("jobs")
    context = {
        "section": "jobs",
        "show": shown,
        "chosen": chosen,
        "form": form,
        "may_submit": bool(launch_tenants(request)),
        "is_filtered": any(request.GET.get(name) for name in ("search", "owner", "phase")),
        "rows": list(zip(page, in_brief(page, actor), strict=True)),
        "following": pages.following,
        "is_later": "cursor" in request.GET,
    }
    return render(request, "jobs/list.html", context, status=200 if is_valid else 422)


@never_cache
@login_required
@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """Do one action to each chosen job. An action that loses something is asked about first."""
    actor = actor_of(request)
    verb = request.POST.get("verb", "")
    if verb not in BULK:
        raise Http404
    chosen = _chosen(actor, request.POST.getlist("job"))
    if not chosen:
        messages.warning(request, _("Select at least one job."))
        return redirect(safe_target(request))
    if verb in ASKED_FIRST and "sure" not in request.POST:
        context = {"section": "jobs", "jobs": chosen, "verb": verb, "back": safe_target(request)}
        return render(request, "jobs/bulk.html", context)
    _report(request, *_do(actor, verb, chosen), len(chosen))
    return redirect(safe_target(request))


def _chosen(actor: Actor, texts: list[str]) -> list[Job]:
    ids = uuids(texts[:MOST_AT_ONCE])
    found = access.visible(actor).filter(pk__in=ids, deleted_at__isnull=True)
    return list(found.select_related(*access.RELATED).order_by("-created_at"))


def _do(actor: Actor, verb: str, jobs: list[Job]) -> tuple[int, list[str]]:
    """Return the number of jobs that changed, and why others were refused."""
    changed, refused = 0, []
    for job in jobs:
        try:
            changed += ACTIONS[verb](actor, job)
        except Refusal as refusal:
            refused.append(f"{job.name}: {refusal.message}")
    return changed, refused


def _report(request: HttpRequest, changed: int, refused: list[str], asked: int) -> None:
    if changed:
        text = ngettext("%(count)d job was changed.", "%(count)d jobs were changed.", changed)
        messages.success(request, text % {"count": changed})
    if refused:
        messages.error(request, " ".join(refused[:3]))
    if asked > changed + len(refused):
        messages.info(request, _("Nothing had to be changed for the others."))
