"""Form on the settings page of a workspace that sets, turns off or removes its weekly schedule."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.rest.actors import actor_of
from workspaces import access
from workspaces.runs import schedule

from .forms_settings import ScheduleForm
from .views_apps import attempt
from .views_workspace import workspace_page


@never_cache
@login_required
@require_POST
def change(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    workspace = access.get(actor, id)
    access.require_own(actor, workspace)
    if "remove" in request.POST:
        schedule.remove(actor, workspace)
        messages.success(request, _("The schedule was removed."))
        return redirect("workspace-settings", id=id)
    form = ScheduleForm(request.POST, schedule.of(workspace), timezone.get_current_timezone_name())
    if not form.is_valid():
        return workspace_page(request, workspace, "settings", status=422, schedule_form=form)
    attempt(request, lambda: schedule.put(actor, workspace, **form.cleaned_data))
    return redirect("workspace-settings", id=id)
