"""The first page: a person's workspaces and the shares they use. It works without scripts; scripts keep it current."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from rest_framework.exceptions import ValidationError

from accounts import tenancy
from accounts.access import Actor
from accounts.credentials import ssh_keys
from accounts.errors import SHOWN_IN_PLACE
from accounts.rest.actors import actor_of
from accounts.targets import safe_target
from accounts.trail import audit
from workloads.pages.lists import Bulk, listed
from workloads.sizes.choices import launch_tenants
from workloads.sizes.shares import shares
from workspaces import access
from workspaces.api import ssh_config
from workspaces.api.representation import known_jump, with_related, workspaces_json
from workspaces.launch.suggestions import sample
from workspaces.models import SEARCHED, Phase, Workspace
from workspaces.runs import lifecycle, sharing

from .views_workspace import what_may

MOST_SHARES = 8  # for an admin, who sees all tenants
PHASES = [(phase.value, phase.label) for phase in Phase if phase != Phase.DELETED]


@never_cache
@login_required
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    phases = [] if request.GET.get("show") == "deleted" else PHASES
    try:
        lists = {"shared": sharing.with_actor(actor)}
        found = listed(request, access.visible(actor), with_related, phases, SEARCHED, lists)
    except ValidationError:  # an address that was cut or made up
        return redirect("workspaces")
    context = found.context
    roles = {tenant.pk: role for tenant, role in tenancy.roles(request)}
    may = [what_may(actor, one, roles.get(one.tenant_id)) for one in found.rows]
    tenants = launch_tenants(request)
    is_empty = (
        not found.rows and context["show"] == "mine" and not (context["is_filtered"] or context["is_later"])
    )
    is_first_visit = is_empty and not access.visible(actor).filter(owner=actor.user).exists()
    chosen = context["chosen"]
    seen = [chosen] if chosen else tenancy.tenants_to_choose(request)
    share = shares(actor, seen[:MOST_SHARES])
    context |= {
        "section": "workspaces",
        "rows": list(zip(found.rows, workspaces_json(found.rows, actor), may, strict=True)),
        "may_some": any(one["stop"] or one["delete"] for one in may),
        "back": request.get_full_path(),
        "shares": share,
        "has_more_shares": len(seen) > MOST_SHARES,
        "tenants": tenants,
        "is_first_visit": is_first_visit,
        "has_list": not is_first_visit or bool(share and not tenants),
        "sample": sample(actor, tenants) if is_first_visit else None,
        "has_ssh_key": actor.user.ssh_keys.exists(),
    }
    return render(request, "workspaces/home.html", context, status=found.status)


@never_cache
@login_required
@require_GET
def ssh_config_file(request: HttpRequest) -> HttpResponse:
    """Return the lines for ~/.ssh/config that lead to all of the person's workspaces, as a file to download."""
    user, jump = actor_of(request).user, known_jump()
    if jump is None:
        raise Http404
    answer = HttpResponse(
        ssh_config.config_of_all(user.get_username(), user.pk, jump), "text/plain; charset=utf-8"
    )
    answer["Content-Disposition"] = f'attachment; filename="{ssh_config.FILE}"'
    return answer


@never_cache
@login_required
@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    return BULK.answer(request)


def _visible(actor: Actor) -> QuerySet[Workspace]:
    return access.visible(actor).select_related("tenant", "owner", "image", "pool__cluster", "flavor")


def _changed(count: int) -> str:
    words = ngettext("%(count)d workspace was changed.", "%(count)d workspaces were changed.", count)
    return words % {"count": count}


def _running(rows: list[Workspace]) -> dict[str, bool]:
    phases = {row.phase for row in rows}
    return {
        "has_running": bool(phases & {Phase.STARTING, Phase.READY}),
        "has_waiting": Phase.WAITING in phases,
    }


BULK = Bulk(
    section="workspaces",
    visible=_visible,
    actions={"stop": lifecycle.stop, "delete": lifecycle.delete},
    asked_first=("stop", "delete"),
    changed=_changed,
    none=gettext_lazy("Select at least one workspace."),
    more=_running,
)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def add_ssh_key(request: HttpRequest) -> HttpResponse:
    """Add a first SSH key, from the pages that miss it. One that is refused is shown here again, with what is wrong."""
    actor, back = actor_of(request), safe_target(request)
    public_key = request.POST.get("public_key", "")
    refused = ""
    if request.method == "POST":
        try:
            name = request.POST.get("name", "").strip() or ssh_keys.comment_of(public_key) or _("My key")
            ssh_keys.add(actor, name, public_key)
        except SHOWN_IN_PLACE as refusal:
            audit.record_refusal(request, actor, refusal)
            refused = f"{refusal.message} {refusal.hint}"
        else:
            messages.success(request, _("Your SSH key was added. It works in all your workspaces."))
            return redirect(back)
    kept = "" if "PRIVATE KEY" in public_key else public_key
    context = {"section": "workspaces", "back": back, "key": kept, "key_refused": refused}
    return render(request, "workspaces/add_key.html", context, status=422 if refused else 200)
