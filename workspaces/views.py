"""Pages. Each works without scripts; with them, what changes is fetched anew when the websocket says so."""

from __future__ import annotations

import json
import shlex
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import ssh_keys
from accounts.access import Actor, tenant_by_slug
from accounts.errors import Conflict, Invalid, Refusal, TooMany
from accounts.rest.actors import actor_of
from quotas.models import Flavor
from quotas.queries import quotas_for

from . import access, lifecycle
from . import launch as launching
from .estimate import alternatives, estimate, size_of
from .forms import LaunchForm
from .gateway import hosts, passes
from .gateway.door import ENTER
from .models import Desired, Image, Phase, Workspace
from .representation import endpoints, event_json, gpus, number, with_related, workspace_json, workspaces_json
from .suggestions import friendly_name, last_launch, launch_tenants, pool_choices, sample
from .timeline import start_took, timeline

ROWS_PER_PAGE = 50
EVENTS_SHOWN = 200
ACTIONS = {"start": lifecycle.start, "stop": lifecycle.stop, "restart": lifecycle.restart}
# Refusals that are shown where the person is; others are a page of their own.
SHOWN_IN_PLACE = (Conflict, Invalid, TooMany)


# --- Workspaces


@never_cache
@login_required
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    everyone = request.GET.get("show") == "everyone"
    rows = with_related(access.visible(actor)).filter(deleted_at__isnull=True)
    mine = rows.filter(owner=actor.user)
    page = Paginator(rows if everyone else mine, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    tenants = launch_tenants(actor)
    has_any = everyone or page.paginator.count > 0
    context = {
        "section": "workspaces",
        "page": page,
        "cards": list(zip(page.object_list, workspaces_json(page.object_list, actor), strict=True)),
        "everyone": everyone,
        "quotas": quotas_for(actor),
        "tenants": tenants,
        "sample": None if has_any else sample(actor, tenants),
        "has_ssh_key": actor.user.ssh_keys.exists(),
    }
    return render(request, "workspaces/home.html", context)


@login_required
@require_POST
def add_ssh_key(request: HttpRequest) -> HttpResponse:
    """The shortest way to a first key; the profile has the rest."""
    try:
        name = request.POST.get("name", "").strip() or _("My key")
        ssh_keys.add(actor_of(request), name, request.POST.get("public_key", ""))
    except SHOWN_IN_PLACE as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
    else:
        messages.success(request, _("Your SSH key was added. It works in all your workspaces."))
    return redirect("workspaces")


# --- Launch


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    tenants = launch_tenants(actor)
    if not tenants:
        return render(request, "workspaces/no_tenant.html", {"section": "workspaces"})
    first = {"name": friendly_name(actor)} | last_launch(actor) | request.GET.dict()
    named = request.POST.get("tenant") or first.get("tenant")
    tenant = next((tenant for tenant in tenants if tenant.slug == named), tenants[0])
    pools = pool_choices(actor, tenant)
    form = LaunchForm(
        request.POST or None,
        first | {"tenant": tenant.slug},
        tenants=tenants,
        images=list(Image.objects.filter(is_active=True)),
        pools=pools,
    )
    if request.method == "POST" and form.is_valid():
        try:
            return redirect("workspace", id=launching.launch(actor, form.spec()).pk)
        except SHOWN_IN_PLACE as refusal:
            form.refuse(refusal)
    context = {"section": "workspaces", "form": form, "pools": pools, "tenants": tenants}
    context |= live_answer(actor, tenant.slug, form.chosen_flavor)
    return render(request, "workspaces/launch.html", context, status=422 if form.errors else 200)


@never_cache
@login_required
@require_GET
def launch_answer(request: HttpRequest) -> HttpResponse:
    """What would become of the size chosen now: for the form's right side."""
    actor = actor_of(request)
    answer = live_answer(actor, request.GET.get("tenant", ""), request.GET.get("flavor"))
    return render(request, "workspaces/_answer.html", answer)


def live_answer(actor: Actor, tenant_slug: str, flavor_slug: str | None) -> dict[str, Any]:
    tenant = tenant_by_slug(actor, tenant_slug)
    flavor = Flavor.objects.select_related("pool__cluster").filter(slug=flavor_slug).first()
    if flavor is None:
        return {"outlook": None}
    outlook = estimate(tenant, size_of(flavor))
    pools = {choice.pool["slug"]: choice.pool for choice in pool_choices(actor, tenant)}
    return {
        "outlook": outlook,
        "asking": tenant,
        "pool": pools[flavor.pool.slug],
        "alternatives": [] if outlook["starts_now"] else alternatives(tenant, size_of(flavor)),
    }


# --- A workspace


@never_cache
@login_required
@require_GET
def activity(request: HttpRequest, id: UUID) -> HttpResponse:
    return workspace_page(request, id, "activity")


@never_cache
@login_required
@require_GET
def logs(request: HttpRequest, id: UUID) -> HttpResponse:
    return workspace_page(request, id, "logs")


@never_cache
@login_required
@require_GET
def settings(request: HttpRequest, id: UUID) -> HttpResponse:
    return workspace_page(request, id, "settings")


def workspace_page(request: HttpRequest, id: UUID, tab: str) -> HttpResponse:
    actor = actor_of(request)
    workspace = access.get(actor, id)
    events = list(workspace.events.order_by("-number")[:EVENTS_SHOWN])
    context = {
        "section": "workspaces",
        "tab": tab,
        "workspace": workspace,
        "shown": workspace_json(workspace, actor),
        "is_own": access.is_own(actor, workspace),
        "may": what_may(actor, workspace),
        "steps": timeline(workspace, events),
        "start_took": start_took(workspace, events),
        "raw": (workspace.failure or {}).get("data", {}).get("raw", ""),
        "events": [(event, event_json(event)) for event in events],
        "has_ssh_key": actor.user.ssh_keys.exists(),
    }
    if tab == "settings":
        context["curl"] = curl_line(request, workspace)
    return render(request, f"workspaces/{tab}.html", context)


def what_may(actor: Actor, workspace: Workspace) -> dict[str, bool]:
    """Which actions make sense now, for this person. The use cases decide; this only leaves out what they refuse."""
    is_there = workspace.desired != Desired.DELETED
    manages = is_there and access.may_manage(actor, workspace)
    runs_own = manages and access.is_own(actor, workspace)
    wanted = workspace.desired == Desired.RUNNING
    return {
        "start": runs_own and (not wanted or workspace.phase == Phase.FAILED),
        "stop": manages and wanted and workspace.phase != Phase.FAILED,
        "restart": runs_own and wanted and workspace.phase in (Phase.READY, Phase.STARTING),
        "delete": manages,
        "logs": access.may_manage(actor, workspace),
    }


@login_required
@require_POST
def act(request: HttpRequest, id: UUID, verb: str) -> HttpResponse:
    if verb not in ACTIONS:
        raise Http404
    actor = actor_of(request)
    workspace = access.get(actor, id)
    try:
        ACTIONS[verb](actor, workspace)
    except SHOWN_IN_PLACE as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
    return redirect("workspace", id=id)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, id: UUID) -> HttpResponse:
    """The same question as in the workspace's dialog, as a page; and its answer."""
    actor = actor_of(request)
    workspace = access.get(actor, id)
    access.require_manage(actor, workspace)
    if request.method == "GET":
        return render(request, "workspaces/delete.html", {"section": "workspaces", "workspace": workspace})
    try:
        lifecycle.delete(actor, workspace, delete_disk="delete_disk" in request.POST)
    except Refusal as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
        return redirect("workspace", id=id)
    messages.success(request, _("“%(name)s” is being deleted.") % {"name": workspace.name})
    return redirect("workspaces")


@never_cache
@login_required
@require_GET
def jupyter(request: HttpRequest, id: UUID) -> HttpResponse:
    """Into JupyterLab: through the portal where that is set up, else at the workspace's own address.

    For a person who opens it: other workspaces' pages are of the same site, and their requests come with the session.
    """
    if request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
        return HttpResponseForbidden()
    actor = actor_of(request)
    workspace = access.get(actor, id)
    access.require_own(actor, workspace)
    direct = endpoints(workspace)["jupyter"]
    if direct is None:
        return redirect("workspace", id=id)
    if not hosts.is_on():
        return redirect(direct)
    ticket = passes.hand_over(str(request.session.session_key), workspace)
    asked = {"ticket": ticket, "next": request.GET.get("next", "/lab")}
    return redirect(f"{hosts.origin_of(id, request.get_host())}{ENTER}?{urlencode(asked)}")


def curl_line(request: HttpRequest, workspace: Workspace) -> str:
    """The same launch for a script. Secrets are not part of it: they are never given back."""
    body: dict[str, Any] = {
        "tenant": workspace.tenant.slug,
        "name": workspace.name,
        "image": workspace.image.slug,
    }
    if workspace.flavor:
        body["flavor"] = workspace.flavor.slug
    else:
        body |= {
            "pool": workspace.pool.slug,
            "gpus": gpus(workspace),
            "cpu": number(workspace.cpu_millicores / 1000),
            "memory_mib": workspace.memory_mib,
        }
    optional: dict[str, Any] = {"disk_mib": workspace.disk_mib}
    if access.is_own(actor_of(request), workspace):
        optional |= {"env": workspace.env, "repository": workspace.repository}
    body |= {name: value for name, value in optional.items() if value}
    address = request.build_absolute_uri(reverse("api-v1:workspaces"))
    return (
        f"curl -X POST {address} \\\n"
        '  -H "Authorization: Bearer $BERTH_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"
    )
