"""Pages of class launches, for owners of a tenant: all of them with the form of a new one, and one with its people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import Actor, owned_tenants
from accounts.errors import SHOWN_IN_PLACE, NotAllowed
from accounts.rest.actors import actor_of
from accounts.trail import audit
from workspaces.classes import acting, collecting, launching
from workspaces.classes.acting import Refused
from workspaces.classes.reading import RUNS, counts_of, lines_of
from workspaces.models import ClassLaunch

from .forms_classes import ClassForm, MinutesForm, PeopleForm, again

PER_PAGE = 30


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def classes(request: HttpRequest) -> HttpResponse:
    """Show the class launches of the person's tenants, and launch a new one."""
    actor = actor_of(request)
    if not owned_tenants(actor).exists():
        raise NotAllowed(
            "owners_only", _("Only owners of a team can launch for others."), _("Ask an owner of your team.")
        )
    if request.method != "POST":
        return _classes_page(request, actor, ClassForm(actor, asked=request.GET))
    form, status = ClassForm(actor, request.POST), 422
    if form.is_valid():
        try:
            return redirect("class-launch", launching.put(actor, form.wish()).pk)
        except SHOWN_IN_PLACE as refusal:
            audit.record_refusal(request, actor, refusal)
            form.refuse(refusal)
            status = refusal.status
    return _classes_page(request, actor, form, status=status)


def _classes_page(request: HttpRequest, actor: Actor, form: ClassForm, *, status: int = 200) -> HttpResponse:
    rows = acting.visible(actor)
    if slug := request.GET.get("tenant", "").replace("\0", ""):
        rows = rows.filter(tenant__slug=slug)
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    counts = counts_of(page.object_list)
    context = {
        "section": "tenants",
        "page": page,
        "rows": [(row, counts[row.pk]) for row in page.object_list],
        "form": form,
    }
    return render(request, "workspaces/classes.html", context, status=status)


@never_cache
@login_required
@require_GET
def one(request: HttpRequest, id: UUID) -> HttpResponse:
    return _page(request, acting.get(actor_of(request), id))


@login_required
@require_POST
def add_people(request: HttpRequest, id: UUID) -> HttpResponse:
    """Launch for more people, and again for those who were refused."""
    actor = actor_of(request)
    row = acting.get(actor, id)
    form, status = PeopleForm(request.POST), 422
    if form.is_valid():
        try:
            launching.put(actor, again(row, form.cleaned_data["people"]))
            return redirect("class-launch", id)
        except SHOWN_IN_PLACE as refusal:
            audit.record_refusal(request, actor, refusal)
            form.add_error("people", f"{refusal.message} {refusal.hint}")
            status = refusal.status
    return _page(request, row, form=form, status=status)


def _page(
    request: HttpRequest, row: ClassLaunch, *, form: PeopleForm | None = None, status: int = 200
) -> HttpResponse:
    lines = lines_of(row)
    refused = [line.person for line in lines if line.seat.code]
    context: dict[str, Any] = {
        "section": "tenants",
        "row": row,
        "counts": counts_of([row])[row.pk],
        "lines": lines,
        "moves": any(line.is_moving for line in lines),
        "runs": any(line.phase in RUNS for line in lines),
        "form": form or PeopleForm(initial={"people": "\n".join(refused)}),
        "minutes": MinutesForm(),
    }
    return render(request, "workspaces/class.html", context, status=status)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def act(request: HttpRequest, id: UUID, verb: str) -> HttpResponse:
    """Ask on GET before a stop or a deletion; carry the action out on POST."""
    if verb not in ACTIONS:
        raise Http404
    actor = actor_of(request)
    row = acting.get(actor, id)
    if request.method == "POST":
        return ACTIONS[verb](request, actor, row)
    if verb == "extend":
        return redirect("class-launch", id)
    return render(request, "question.html", _question(row, verb))


@never_cache
@login_required
@require_POST
def collect(request: HttpRequest, id: UUID) -> HttpResponseBase:
    """Send a folder of each person as one archive; say on the class's page why not."""
    actor = actor_of(request)
    row = acting.get(actor, id)
    try:
        return collecting.answer(collecting.begin(actor, row, request.POST.get("folder", "")))
    except SHOWN_IN_PLACE as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
        return redirect("class-launch", id)


def _question(row: ClassLaunch, verb: str) -> dict[str, Any]:
    common = {"section": "tenants", "back": reverse("class-launch", args=[row.pk])}
    if verb == "delete":
        return common | {
            "title": _("Delete the class launch “%(name)s”?") % {"name": row.name},
            "effects": [_("Its workspaces stay with their people, and go on. Only this list is deleted.")],
            "label": _("Delete"),
            "keep": _("Keep it"),
        }
    return common | {
        "title": _("Stop all workspaces of “%(name)s”?") % {"name": row.name},
        "effects": [
            _("Running programs end, and what is only in memory is lost. Files are kept."),
            _("No more workspaces are launched for this class until you launch it again."),
        ],
        "label": _("Stop all, keep files"),
        "keep": _("Leave them running"),
    }


def _stop(request: HttpRequest, actor: Actor, row: ClassLaunch) -> HttpResponse:
    _tell(request, acting.stop(actor, row), _("All workspaces of the class are stopped."))
    return redirect("class-launch", row.pk)


def _extend(request: HttpRequest, actor: Actor, row: ClassLaunch) -> HttpResponse:
    form = MinutesForm(request.POST)
    if form.is_valid():
        refused = acting.extend(actor, row, form.cleaned_data["minutes"])
        _tell(request, refused, _("All running workspaces of the class were extended."))
    else:
        messages.error(request, str(form.errors["minutes"][0]))
    return redirect("class-launch", row.pk)


def _delete(request: HttpRequest, actor: Actor, row: ClassLaunch) -> HttpResponse:
    acting.delete(actor, row)
    messages.success(request, _("The class launch “%(name)s” was deleted.") % {"name": row.name})
    return redirect("class-launches")


def _tell(request: HttpRequest, refused: Refused, done: str) -> None:
    """Say what was done, or for how many not, and why for the first."""
    if not refused:
        messages.success(request, done)
        return
    first = next(iter(refused.values()))
    text = ngettext(
        "Not for %(count)d workspace: %(why)s", "Not for %(count)d workspaces: %(why)s", len(refused)
    )
    messages.error(request, text % {"count": len(refused), "why": f"{first.message} {first.hint}"})


ACTIONS: dict[str, Callable[[HttpRequest, Actor, ClassLaunch], HttpResponse]] = {
    "stop": _stop,
    "extend": _extend,
    "delete": _delete,
}
