"""Pages of one workspace, and the actions of its buttons. Actions that lose something ask first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from accounts.access import Actor, role_in
from accounts.errors import SHOWN_IN_PLACE, Refusal
from accounts.models import Role
from accounts.notices import inbox
from accounts.rest.actors import actor_of
from accounts.targets import safe_target
from quotas import reasons
from quotas.estimates import Estimator
from quotas.models import Claim
from storage.mounts import homes
from workloads import images
from workloads.logs.panel import Panel
from workloads.pages.bodies import curl
from workloads.repositories import holds_credentials
from workloads.sizes.estimate import alternatives
from workloads.sizes.sizing import Size
from workspaces import access
from workspaces.api.representation import event_json, workspace_json
from workspaces.gateway import hosts, passes
from workspaces.launch.keys import whole_address
from workspaces.models import Desired, Phase, Workspace
from workspaces.runs import idleness, lifecycle, lifetime, schedule, sharing
from workspaces.runs.changes import place_at_stake
from workspaces.state import jupyter, runs, settings

from .forms_settings import AppForm, ScheduleForm, ShareForm
from .same_launch import body_of_workspace
from .timeline import by_run, start_took, timeline

EVENTS_SHOWN = 200
LONGER_MINUTES = 120  # of the button “+2 h”
ACTIONS: dict[str, Callable[[Actor, Workspace], bool]] = {
    "start": lifecycle.start,
    "stop": lifecycle.stop,
    "restart": lifecycle.restart,
    "extend": partial(lifetime.extend, minutes=LONGER_MINUTES),
    "keep-alive": idleness.keep_alive,
}
ASKED_FIRST = ("stop", "restart")
UNDOES_SIZE = (Phase.WAITING, Phase.STARTING)


@never_cache
@login_required
@require_GET
def tab(request: HttpRequest, id: UUID, name: str) -> HttpResponse:
    return workspace_page(request, access.get(actor_of(request), id), name)


def workspace_page(
    request: HttpRequest, workspace: Workspace, tab: str, *, status: int = 200, **more: Any
) -> HttpResponse:
    actor = actor_of(request)
    may = what_may(actor, workspace, role_in(actor, workspace.tenant))
    events = list(workspace.events.order_by("-number")[:EVENTS_SHOWN])
    context: dict[str, Any] = {
        "section": "workspaces",
        "tab": tab,
        "workspace": workspace,
        "shown": workspace_json(workspace, actor),
        "is_own": access.is_own(actor, workspace),
        "may": may,
        "steps": timeline(workspace, events),
        "start_took": start_took(workspace, events),
        "raw": (workspace.failure or {}).get("data", {}).get("raw", ""),
        "has_ssh_key": actor.user.ssh_keys.exists(),
        "apps_closed": apps_closed(workspace),
        "in_clear_text": not hosts.is_on(),
        "app_form": AppForm(),
        "share": access.share_of(actor, workspace),
        "share_form": ShareForm(),
        "schedule": schedule.of(workspace) if may["logs"] else None,
    }
    if tab == "settings" and may["share"]:
        zone = timezone.get_current_timezone_name()
        context["schedule_form"] = ScheduleForm(None, context["schedule"], zone)
        turn = schedule.next_turn(context["schedule"], workspace) if context["schedule"] else None
        context["next_turn"] = turn and (turn.at, str(turn.act))
    if may["logs"] and not workspace.deleted_at:
        context["shares"] = sharing.shares_of(actor, workspace, manages=may["revoke"])
    context |= what_waits(workspace) if context["is_own"] else {}
    if context["is_own"] and workspace.phase == Phase.WAITING and not workspace.ending:
        context["place_at_stake"] = place_at_stake(workspace)
        size, minutes = Size.of(workspace), workspace.max_runtime_minutes
        looks = Estimator(without=workspace.run)
        others = alternatives(looks, workspace.tenant, workspace.owner, size, minutes, workspace.pk)
        cluster = workspace.pool.cluster_id
        context["alternatives"] = [other for other in others if other.size.pool.cluster_id == cluster]
        code = context["shown"]["queue"]["reason"]["code"] if context["shown"]["queue"] else ""
        context["tied_by"] = homes.ties(workspace.pk) if code in reasons.TIED else None
    is_refresh = bool(request.headers.get("HX-Request"))  # takes #now alone, which no tab's own block is in
    if tab == "activity" and not is_refresh:
        claims = Claim.objects.in_bulk({event.run for event in events if event.run})
        context["runs"] = by_run([(event, event_json(event)) for event in events], claims)
    if tab == "logs" and may["logs"] and not is_refresh:
        api = reverse("api-v1:workspace-logs", args=[workspace.pk])
        context["log"] = Panel(request, workspace.pk, socket=f"/ws/workspaces/{workspace.pk}/logs/", api=api)
    if tab == "settings":
        address = request.build_absolute_uri(reverse("api-v1:workspaces"))
        context["curl"] = curl(address, body_of_workspace(actor, workspace))
        context["leaves_credentials_out"] = context["is_own"] and holds_credentials(whole_address(workspace))
    if not is_refresh:
        inbox.read_about(actor.user, workspace.pk)
    return render(request, f"workspaces/{tab}.html", context | more, status=status)


def apps_closed(workspace: Workspace) -> str:
    """Return why no app of it can ever be opened here; empty if nothing keeps them closed."""
    if not hosts.is_on():
        return _("Apps cannot be opened here: an admin has to set a domain for workspaces.")
    if not workspace.image.offers_jupyter:
        return _("Its apps cannot be opened: they need an image that offers Jupyter.")
    return ""


def what_waits(workspace: Workspace) -> dict[str, Any]:
    """Return what its owner can take back: the image and the size that it had before. And what a restart applies."""
    waits = settings.changes_of(workspace)
    back_to = workspace.image if "image" in waits else None
    if back_to is None and workspace.previous_image:
        back_to = images.former(workspace.tenant, workspace.previous_image)
    may_undo = not workspace.ending and workspace.phase in UNDOES_SIZE
    former = workspace.former_size if may_undo else None
    return {
        "back_to": back_to,
        "back_restarts": workspace.phase in (Phase.STARTING, Phase.FAILED),
        "former": Size.kept(former["size"]) if former else None,
    }


def what_may(actor: Actor, workspace: Workspace, role: Role | None) -> dict[str, bool]:
    """Actions that make sense now for this person. The use cases decide; this only leaves out what they refuse."""
    is_there = workspace.desired != Desired.DELETED
    manages_it = access.manages(role, is_own=access.is_own(actor, workspace))
    manages = is_there and manages_it
    runs_own = manages and access.is_own(actor, workspace)
    launches = role in access.LAUNCHES
    wanted = workspace.desired == Desired.RUNNING
    rests = workspace.phase in (Phase.STOPPED, Phase.FAILED) or not is_there
    return {
        "start": runs_own and (not wanted or workspace.phase == Phase.FAILED),
        "stop": manages and wanted and workspace.phase != Phase.FAILED,
        "restart": runs_own and wanted and workspace.phase in (Phase.READY, Phase.STARTING),
        "extend": manages and wanted and workspace.stops_at is not None,
        "delete": manages,
        "apps": runs_own,
        "launch_again": rests and launches,
        "clone": launches and not workspace.deleted_at,
        "run_as_job": is_there and launches,
        "logs": manages_it or access.share_of(actor, workspace) is not None,
        "share": runs_own,
        "revoke": manages,
    }


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def act(request: HttpRequest, id: UUID, verb: str) -> HttpResponse:
    """Ask the question on GET, if the action loses something; carry the action out on POST."""
    if verb not in ACTIONS:
        raise Http404
    actor = actor_of(request)
    workspace = access.get(actor, id)
    if request.method == "GET":
        access.require_manage(actor, workspace)
        if verb in ASKED_FIRST and what_may(actor, workspace, role_in(actor, workspace.tenant))[verb]:
            return question(request, actor, workspace, verb)
    else:
        try:
            changed = ACTIONS[verb](actor, workspace)
        except SHOWN_IN_PLACE as refusal:
            messages.error(request, f"{refusal.message} {refusal.hint}")
        else:
            if changed and verb == "extend":
                workspace.refresh_from_db(fields=["stops_at"])
                at = date_format(timezone.localtime(workspace.stops_at), "SHORT_DATETIME_FORMAT")
                messages.success(request, _("It now runs until %(time)s.") % {"time": at})
    return redirect(_back(request) or reverse("workspace", args=[id]))


def _back(request: HttpRequest) -> str:
    """Return the page that the question was asked from, if it was not the workspace's own."""
    return safe_target(request) if "next" in request.GET or "next" in request.POST else ""


def question(request: HttpRequest, actor: Actor, workspace: Workspace, verb: str) -> HttpResponse:
    is_own = access.is_own(actor, workspace)
    context = {
        "section": "workspaces",
        "workspace": workspace,
        "verb": verb,
        "is_own": is_own,
        "is_changing": runs.is_changing(workspace),
        "made_for": homes.made_for(workspace.pk),
        "back": _back(request),
    }
    return render(request, "workspaces/question.html", context)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    workspace = access.get(actor, id)
    access.require_manage(actor, workspace)
    if request.method == "GET":
        return question(request, actor, workspace, "delete")
    try:
        lifecycle.delete(actor, workspace, delete_disk="delete_disk" in request.POST)
    except Refusal as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
        return redirect("workspace", id=id)
    messages.success(request, _("“%(name)s” is being deleted.") % {"name": workspace.name})
    return redirect(_back(request) or "workspaces")


@never_cache
@login_required
@require_GET
def open_jupyter(request: HttpRequest, id: UUID) -> HttpResponse:
    """Redirect to JupyterLab with a ticket: through the portal if that is set up, else to the workspace's own address.

    Only for a person who opens it: pages of other workspaces are of the same site, so their requests carry the session.
    """
    if not is_followed(request):
        return HttpResponseForbidden()
    actor = actor_of(request)
    workspace = access.get(actor, id)
    access.require_work(actor, workspace)
    if not hosts.is_on():  # a colleague's way in is Berth, which can end it
        access.require_own(actor, workspace)
    address = hosts.jupyter_of(workspace)
    if not address:
        return redirect("workspace", id=id)
    then = request.GET.get("next", "/lab")
    if hosts.is_on():
        return handed_over(request, hosts.Site(id), then)
    # /login redirects once and leaves a cookie; /lab would keep the ticket in the address bar
    return away(f"{address}login?{urlencode({'next': then, 'token': jupyter.ticket(workspace)})}")


def is_followed(request: HttpRequest) -> bool:
    """Return True if a person follows a link, and no page of a workspace fetches it."""
    return request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"


def handed_over(request: HttpRequest, site: hosts.Site, then: str) -> HttpResponse:
    """Redirect to the site with a ticket for this browser."""
    ticket = passes.hand_over(str(request.session.session_key), actor_of(request).user, site)
    return away(hosts.way_in(site, request.get_host(), ticket=ticket, then=then))


def away(address: str) -> HttpResponse:
    answer = redirect(address)
    answer["Referrer-Policy"] = "no-referrer"
    return answer
