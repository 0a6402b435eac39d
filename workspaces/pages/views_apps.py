"""Apps of a workspace: the buttons that declare, share and remove them, and the way into one."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from accounts.errors import SHOWN_IN_PLACE
from accounts.rest.actors import actor_of
from workspaces import access
from workspaces.gateway import hosts
from workspaces.models import Workspace
from workspaces.runs import declaring
from workspaces.state import declared, jupyter
from workspaces.state.declared import App, SharedWith

from .forms_settings import AppForm
from .views_workspace import apps_closed, handed_over, is_followed

PAGES = {"settings": "workspace-settings"}


@never_cache
@login_required
@require_POST
def add(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    workspace = access.get(actor, id)
    access.require_own(actor, workspace)
    form = AppForm(request.POST.dict())
    attempt_form(request, form, lambda: declaring.add(actor, workspace, App(**form.cleaned_data)))
    return back_to(request, workspace)


@never_cache
@login_required
@require_POST
def change(request: HttpRequest, id: UUID, port: int) -> HttpResponse:
    """Share the app, make it private again, or remove it."""
    actor = actor_of(request)
    workspace = access.get(actor, id)
    access.require_own(actor, workspace)
    asked = request.POST.get("shared_with", "")
    if asked in SharedWith:
        attempt(request, lambda: declaring.change(actor, workspace, port, shared_with=asked))
    elif "remove" in request.POST:
        attempt(request, lambda: declaring.remove(actor, workspace, port))
    return back_to(request, workspace)


def attempt(request: HttpRequest, use_case: Callable[[], object]) -> None:
    """Carry the use case out, or show why it was refused."""
    try:
        use_case()
    except SHOWN_IN_PLACE as refusal:
        texts = [text for found in refusal.fields.values() for text in found]
        messages.error(request, " ".join([*(texts or [refusal.message]), refusal.hint]))


def attempt_form(request: HttpRequest, form: Form, use_case: Callable[[], object]) -> None:
    """Carry out what a form of the page asks for, or show the first of its errors."""
    if form.is_valid():
        attempt(request, use_case)
    else:
        name, texts = next(iter(form.errors.items()))
        messages.error(request, f"{form.fields[name].label}: {texts[0]}")


def back_to(request: HttpRequest, workspace: Workspace) -> HttpResponse:
    return redirect(PAGES.get(request.POST.get("from", ""), "workspace"), id=workspace.pk)


@never_cache
@login_required
@require_GET
def open_app(request: HttpRequest, id: UUID, port: int) -> HttpResponse:
    """Redirect to the app's own host with a ticket. Only for a person who opens it, as for JupyterLab."""
    if not is_followed(request):
        return HttpResponseForbidden()
    actor = actor_of(request)
    workspace = access.get(actor, id)
    app = declared.app_at(workspace, port)
    for_owner = app is not None and declared.is_code_server(workspace, app)
    access.require_app(actor, workspace, is_shared=app is not None and app.is_shared, for_owner=for_owner)
    if app is None:
        declared.require_app(workspace, port)
    if not hosts.is_on() or not jupyter.address(workspace):
        messages.error(request, apps_closed(workspace) or _("Its apps can be opened while it is ready."))
        return redirect("workspace", id=id)
    return handed_over(request, hosts.Site(id, port), request.GET.get("next", "/"))
