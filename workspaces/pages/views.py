"""The first page: a person's workspaces and the shares they use. It works without scripts; scripts keep it current."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from accounts.credentials import ssh_keys
from accounts.errors import SHOWN_IN_PLACE
from accounts.rest.actors import actor_of
from accounts.targets import safe_target
from accounts.tenancy import current_tenant, tenants_to_choose
from accounts.trail import audit
from workloads.sizes.choices import launch_tenants
from workloads.sizes.shares import shares
from workspaces import access
from workspaces.api import ssh_config
from workspaces.api.representation import known_jump, with_related, workspaces_json
from workspaces.launch.suggestions import sample
from workspaces.models import Workspace

ROWS_PER_PAGE = 50
MOST_SHARES = 8  # for an admin, who sees all tenants
LISTS = ("mine", "everyone", "deleted")


@never_cache
@login_required
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    chosen = current_tenant(request)
    shown = request.GET.get("show", "")
    shown = shown if shown in LISTS else LISTS[0]
    rows = access.visible(actor).filter(deleted_at__isnull=shown != "deleted")
    if shown != "everyone":
        rows = rows.filter(owner=actor.user)
    if chosen:
        rows = rows.filter(tenant=chosen)
    page = Paginator(rows.values_list("pk", flat=True), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    workspaces = with_related(Workspace.objects.filter(pk__in=list(page.object_list)))
    tenants = launch_tenants(request)
    is_empty = shown == "mine" and not workspaces
    is_first_visit = is_empty and not access.visible(actor).filter(owner=actor.user).exists()
    seen = [chosen] if chosen else tenants_to_choose(request)
    context = {
        "section": "workspaces",
        "page": page,
        "cards": list(zip(workspaces, workspaces_json(workspaces, actor), strict=True)),
        "show": shown,
        "chosen": chosen,
        "shares": shares(actor, seen[:MOST_SHARES]),
        "has_more_shares": len(seen) > MOST_SHARES,
        "tenants": tenants,
        "is_first_visit": is_first_visit,
        "sample": sample(actor, tenants) if is_first_visit else None,
        "has_ssh_key": actor.user.ssh_keys.exists(),
    }
    return render(request, "workspaces/home.html", context)


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


@login_required
@require_POST
def add_ssh_key(request: HttpRequest) -> HttpResponse:
    """Add a first SSH key from the page that misses it; the profile has all other actions on keys."""
    actor = actor_of(request)
    try:
        public_key = request.POST.get("public_key", "")
        name = request.POST.get("name", "").strip() or ssh_keys.comment_of(public_key) or _("My key")
        ssh_keys.add(actor, name, public_key)
    except SHOWN_IN_PLACE as refusal:
        audit.record_refusal(request, actor, refusal)
        messages.error(request, f"{refusal.message} {refusal.hint}")
    else:
        messages.success(request, _("Your SSH key was added. It works in all your workspaces."))
    return redirect(safe_target(request))
