"""Settings page of a workspace, and the buttons of a waiting one that change its size, lifetime or notices."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import Actor
from accounts.errors import SHOWN_IN_PLACE
from accounts.rest.actors import actor_of
from workspaces import access
from workspaces.launch.clone import clone
from workspaces.models import Desired, Workspace
from workspaces.runs import lifecycle
from workspaces.runs.changes import Change, change, place_at_stake

from .forms_settings import CloneForm, InsteadForm, SettingsForm
from .views_workspace import workspace_page


@never_cache
@login_required
@sensitive_post_parameters("env", "secret_env")
@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    workspace = access.get(actor, id)
    if request.method == "POST":
        access.require_own(actor, workspace)
    may_clone = access.may_launch(actor, workspace.tenant) and not workspace.deleted_at
    clone_form = CloneForm(None, actor, workspace) if may_clone else None
    may_change = access.is_own(actor, workspace) and access.may_launch(actor, workspace.tenant)
    if not may_change or workspace.desired == Desired.DELETED:
        return workspace_page(request, workspace, "settings", clone=clone_form)
    form = SettingsForm(request.POST if request.method == "POST" else None, actor, workspace)
    place = None
    if request.method == "POST" and form.is_valid():
        try:
            wanted = form.change()
            place = None if "confirmed" in request.POST else place_given_up(workspace, wanted)
            changed = place is None and change(actor, workspace, wanted)
        except SHOWN_IN_PLACE as refusal:
            form.refuse(refusal)
        else:
            if place is None and "restart" in request.POST:
                return restarted(request, actor, id)
            if changed:
                messages.success(request, _("Saved."))
            if place is None:
                return redirect("workspace-settings", id=id)
    return workspace_page(
        request,
        workspace,
        "settings",
        status=422 if form.errors else 200,
        form=form,
        clone=clone_form,
        place_given_up=place,
    )


def place_given_up(workspace: Workspace, wanted: Change) -> int | None:
    """Return the place in the queue that the change gives up, of which the person has to know first; else None."""
    return None if wanted.size is None else place_at_stake(workspace, wanted.size)


def restarted(request: HttpRequest, actor: Actor, id: UUID) -> HttpResponse:
    """Restart or start the workspace, so that what was saved takes effect, and show it."""
    try:
        lifecycle.restart(actor, access.get(actor, id))
    except SHOWN_IN_PLACE as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
    return redirect("workspace", id=id)


@login_required
@require_POST
def clone_workspace(request: HttpRequest, id: UUID) -> HttpResponse:
    """Launch another with the same settings, and show it."""
    actor = actor_of(request)
    workspace = access.get(actor, id)
    access.require_launch(actor, workspace.tenant)
    form = CloneForm(request.POST, actor, workspace)
    if not form.is_valid():
        messages.error(request, str(next(iter(form.errors.values()))[0]))
        return redirect("workspace-settings", id=id)
    try:
        made = clone(
            actor, workspace, form.cleaned_data["name"], files=form.cleaned_data.get("with_files", False)
        )
    except SHOWN_IN_PLACE as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
        return redirect("workspace-settings", id=id)
    return redirect("workspace", id=made.pk)


@never_cache
@login_required
@require_POST
def instead(request: HttpRequest, id: UUID) -> HttpResponse:
    """Change it by one click. What gives up a place in the queue is asked about first."""
    actor = actor_of(request)
    workspace = access.get(actor, id)
    form = InsteadForm(request.POST)
    try:
        if form.is_valid():
            wanted = form.change()
            asks = access.is_own(actor, workspace) and not form.cleaned_data["confirmed"]
            if asks and (place := place_given_up(workspace, wanted)) is not None:
                sent = [(name, request.POST[name]) for name in form.fields if request.POST.get(name)]
                context = {"section": "workspaces", "workspace": workspace, "place": place, "sent": sent}
                return render(request, "workspaces/switch.html", context)
            change(actor, workspace, wanted)
            if form.cleaned_data["restart"]:
                return restarted(request, actor, id)
        else:
            access.require_own(actor, workspace)
            messages.error(request, _("Changes were not saved. Reload the page and try again."))
    except SHOWN_IN_PLACE as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
    return redirect("workspace", id=id)
