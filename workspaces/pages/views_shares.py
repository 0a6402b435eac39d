"""Buttons on the page of a workspace that share it with a colleague, and end that."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.rest.actors import actor_of
from workspaces import access
from workspaces.runs import sharing

from .forms_settings import ShareForm
from .views_apps import attempt_form, back_to


@never_cache
@login_required
@require_POST
def share(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    workspace = access.get(actor, id)
    access.require_own(actor, workspace)
    form = ShareForm(request.POST.dict())
    attempt_form(request, form, lambda: sharing.share(actor, workspace, **form.cleaned_data))
    return back_to(request, workspace)


@never_cache
@login_required
@require_POST
def end(request: HttpRequest, id: UUID, share: UUID) -> HttpResponse:
    actor = actor_of(request)
    workspace = access.get(actor, id)
    sharing.end(actor, workspace, share)
    messages.success(request, _("The sharing has ended. Everything that was open is closed."))
    return back_to(request, workspace)
