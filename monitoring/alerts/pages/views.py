"""Pages of alerts: the list by state, and one alert with its members and messages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from accounts.errors import Conflict
from accounts.rest.actors import actor_of
from accounts.rest.pagination import KeysetPagination
from accounts.tenancy import current_tenant, owns_any
from clusters.explain import steps
from monitoring.alerts import access, actions, words
from monitoring.alerts.pages.forms import FilterForm, SilenceForm
from monitoring.alerts.representation import alerts_json
from monitoring.models import Alert, AlertMember, Severity

State = Alert.State
MEMBERS_ON_A_PAGE = 100
DELIVERIES_SHOWN = 100


class Newest:
    keyset = ("-since", "-id")


@never_cache
@login_required
@require_GET
def alerts(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    rows = access.visible(actor)
    if chosen := current_tenant(request):
        rows = (
            rows.filter(tenant=chosen)
            if not actor.is_admin
            else rows.filter(Q(tenant=chosen) | Q(tenant=None))
        )
    counts = {state: rows.filter(state=state).count() for state in State.values if state != State.RESOLVED}
    shown = request.GET.get("state", State.FIRING)
    shown = shown if shown in State.values else State.FIRING
    form = FilterForm(request.GET)
    is_valid = form.is_valid()
    rows = _matching(rows.filter(state=shown), form.cleaned_data) if is_valid else rows.none()
    pages = KeysetPagination()
    try:
        page = pages.paginate_queryset(rows, Request(request), Newest)
    except ValidationError:  # an address that was cut or made up
        return redirect("alerts")
    context = {
        "section": "alerts",
        "state": shown,
        "tabs": [(state.value, state.label, counts.get(state.value)) for state in State],
        "form": form,
        "is_filtered": any(request.GET.get(name) for name in form.fields),
        "rows": list(zip(page, alerts_json(page), strict=True)),
        "may_see": owns_any(request),
        "following": pages.following,
        "is_later": "cursor" in request.GET,
    }
    return render(request, "monitoring/alerts.html", context, status=200 if is_valid else 422)


def _matching(rows: QuerySet[Alert], asked: dict[str, Any]) -> QuerySet[Alert]:
    if asked["severity"]:
        rows = rows.filter(severity=Severity[asked["severity"].upper()])
    if asked["cluster"]:
        rows = rows.filter(cluster__slug=asked["cluster"])
    if text := asked["search"]:
        named = Q(node__icontains=text) | Q(name__icontains=text) | Q(code=text)
        rows = rows.filter(Exists(AlertMember.objects.filter(named, alert=OuterRef("pk"))))
    return rows


@never_cache
@login_required
@require_GET
def alert(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    row = access.get(actor, id)
    members = Paginator(row.members.order_by("ended_at", "since", "pk"), MEMBERS_ON_A_PAGE)
    page = members.get_page(request.GET.get("page"))
    sent = access.deliveries(actor).filter(alert=row).order_by("created_at", "pk")
    context = {
        "section": "alerts",
        "alert": row,
        "shown": alerts_json([row])[0],
        "page": page,
        "members": [(member, words.sentence(member.code, member.data)) for member in page],
        "deliveries": sent[:DELIVERIES_SHOWN],
        "is_open": row.state != State.RESOLVED,
        "silence": SilenceForm(),
        "steps": steps(row.code, next((one.node for one in page), "") if row.count == 1 else "")
        if actor.is_admin
        else (),
    }
    return render(request, "monitoring/alert.html", context)


@never_cache
@login_required
@require_POST
def act(request: HttpRequest, id: UUID, verb: str) -> HttpResponse:
    actor = actor_of(request)
    row = access.get(actor, id)
    try:
        if verb == "acknowledge":
            actions.acknowledge(actor, row)
        elif verb == "resolve":
            actions.resolve(actor, row)
        elif verb == "silence":
            form = SilenceForm(request.POST)
            if form.is_valid():
                actions.silence(actor, row, form.cleaned_data["minutes"])
            else:
                messages.error(request, _("Choose for how long."))
        else:
            raise Http404
    except Conflict as refusal:
        messages.warning(request, f"{refusal.message} {refusal.hint}")
    return redirect("alert", id=id)
