"""Pages of adoption: an admin names storage that is there already, its owner confirms it on the volume's page."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.errors import SHOWN_IN_PLACE
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.tenancy import current_tenant
from storage import adoption

from .forms import AdoptForm
from .views import act, refused


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def adopt(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    actor.require(Scope.ADMIN)
    form = AdoptForm(request.POST or None, tenant=current_tenant(request))
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                volume = adoption.adopt(actor, *form.asked())
            except SHOWN_IN_PLACE as refusal:
                status = refused(request, actor, form, refusal)
            else:
                messages.success(request, _("“%(name)s” is being adopted.") % {"name": volume.name})
                return redirect("volume", volume.pk)
    return render(request, "storage/adopt.html", {"section": "volumes", "form": form}, status=status)


@login_required
@require_POST
def confirm(request: HttpRequest, id: UUID) -> HttpResponse:
    return act(request, id, adoption.confirm, _("“%(name)s” can be written to from now on."))


@login_required
@require_POST
def inspect(request: HttpRequest, id: UUID) -> HttpResponse:
    return act(request, id, adoption.inspect_again, _("“%(name)s” is being inspected."))
