"""Pages of alert routes, for admins and for owners."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.errors import Conflict, Refusal
from accounts.forms import show_refusal
from accounts.rest.actors import actor_of
from accounts.tenancy import owns_any
from monitoring.alerts import access, deliveries, routes
from monitoring.alerts.pages.forms import RouteForm

DELIVERIES_SHOWN = 100


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def all_routes(request: HttpRequest) -> HttpResponse:
    """Show the routes that the person may change, and a form for another one."""
    actor = actor_of(request)
    deliveries.ensure_default()
    form = RouteForm(actor, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            route = routes.create(actor, form.values())
        except Refusal as refusal:
            if not refusal.fields and refusal.status != 422:
                raise
            show_refusal(form, refusal)
        else:
            messages.success(request, _("Saved. Send a test to see whether it arrives."))
            return redirect("alert-route", id=route.pk)
    context = {
        "section": "alerts",
        "rows": access.routes(actor),
        "form": form if owns_any(request) else None,
    }
    return render(request, "monitoring/alert_routes.html", context, status=422 if form.errors else 200)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def one_route(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    route = access.get_route(actor, id)
    form = RouteForm(actor, request.POST if request.method == "POST" else None, route=route)
    if request.method == "POST" and form.is_valid():
        try:
            routes.change(actor, route, form.values())
        except Refusal as refusal:
            if not refusal.fields:
                raise
            show_refusal(form, refusal)
        else:
            messages.success(request, _("Saved."))
            return redirect("alert-route", id=id)
    sent = route.deliveries.select_related("alert", "recipient", "route")
    context = {
        "section": "alerts",
        "route": route,
        "form": form,
        "deliveries": sent[:DELIVERIES_SHOWN],
    }
    return render(request, "monitoring/alert_route.html", context, status=422 if form.errors else 200)


@never_cache
@login_required
@require_POST
def act(request: HttpRequest, id: UUID, verb: str) -> HttpResponse:
    actor = actor_of(request)
    route = access.get_route(actor, id)
    try:
        if verb == "test":
            routes.test(actor, route)
            messages.success(request, _("A test is on its way. This page shows when it is sent."))
        elif verb == "delete":
            routes.delete(actor, route)
            messages.success(request, _("The route is deleted."))
            return redirect("alert-routes")
        else:
            raise Http404
    except Conflict as refusal:
        messages.warning(request, f"{refusal.message} {refusal.hint}")
    return redirect("alert-route", id=id)
