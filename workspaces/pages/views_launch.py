"""The launch page, and the live answer beside its form."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import Actor
from workloads.pages import prefill
from workloads.pages.form_pages import Beginning, FormPage
from workloads.pages.forms import MIB_PER_GIB
from workspaces.launch.clone import free_name
from workspaces.launch.launch import launch as launch_workspace
from workspaces.launch.suggestions import friendly_name
from workspaces.models import Workspace
from workspaces.state import declared

from . import views_templates
from .forms import LaunchForm, lines_of

COPIED = {"again": "workspace", "job": "job"}


@never_cache
@login_required
@sensitive_post_parameters("env", "secret_env")
@require_http_methods(["GET", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    return PAGE.respond(request)


@never_cache
@login_required
@sensitive_post_parameters("env", "secret_env")
@require_POST
def launch_answer(request: HttpRequest) -> HttpResponse:
    return PAGE.answer(request)


@never_cache
@login_required
@sensitive_post_parameters("env", "secret_env")
@require_POST
def save_template(request: HttpRequest) -> HttpResponse:
    """Save the form as a template for its tenant, and show it filled in from there."""
    return PAGE.respond(request, views_templates.save)


def begin(actor: Actor, link: Mapping[str, str]) -> Beginning:
    """Fill the form in from a template, a workspace to launch again, a job to look at, or the last launch."""
    if "template" in link:
        if template := views_templates.named(actor, link["template"]):
            values = views_templates.first_values(actor, template)
            return Beginning(values, is_copy=True, context={"template": template})
        return Beginning({"name": friendly_name(actor)}, [_("This template does not exist.")])
    copies, source, notes = prefill.copied(actor, link, COPIED)
    if source is not None:
        again = source.row if isinstance(source.row, Workspace) else None
        values = prefill.settings_of(source) | (own_values(again) if again else {})
        values["name"] = free_name(actor, again) if again else friendly_name(actor)
        return Beginning(values, notes, is_copy=True, context={"again": source.row, "copies": copies})
    fresh = {"name": friendly_name(actor)}
    if copies or "fresh" in link or prefill.describes_all(link):
        return Beginning(fresh, notes)
    rows = Workspace.objects.filter(owner=actor.user).select_related("tenant", "image", "flavor", "pool")
    if (last := rows.first()) is None:
        return Beginning(fresh)
    values = fresh | prefill.row_values(last, is_own=True) | own_values(last)
    return Beginning(values, is_last=True, context={"like": last})


def own_values(row: Workspace) -> dict[str, object]:
    """First values that workspaces alone have."""
    return {
        "disk_gib": row.disk_mib // MIB_PER_GIB,
        "max_runtime_minutes": row.max_runtime_minutes or "",
        "idle_minutes": row.idle_minutes,
        "notify": row.notify,
        "apps": lines_of(declared.apps_of(row)),
    }


PAGE = FormPage(
    form=LaunchForm,
    section="workspaces",
    template="workspaces/launch.html",
    same="workspaces/_same.html",
    no_tenant="workspaces/no_tenant.html",
    begin=begin,
    submit=lambda actor, form: str(launch_workspace(actor, form.spec()).pk),
    done="workspace",
    more=views_templates.shown,
)
