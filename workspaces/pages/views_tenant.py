"""Pages of tenants: members, their roles, and what they run. Owners change these; members and viewers look."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Case, Q, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import members
from accounts.access import Actor, require_owner, role_in, tenant_by_slug
from accounts.errors import Conflict, Invalid, Refusal
from accounts.forms import MemberForm, ServiceAccountForm, show_refusal
from accounts.models import Role, Tenant
from accounts.rest.actors import actor_of
from accounts.search import too_much
from accounts.service_accounts import changing as service_accounts
from accounts.trail import audit
from workloads.sizes.shares import shares
from workspaces.runs import people

TENANTS_PER_PAGE = 50
PEOPLE_PER_PAGE = 100
OWNERS_FIRST = Case(
    When(role=Role.OWNER, then=Value(0)), When(role=Role.MEMBER, then=Value(1)), default=Value(2)
)


@never_cache
@login_required
@require_GET
def tenants(request: HttpRequest) -> HttpResponse:
    search = request.GET.get("search", "").replace("\0", "").strip()
    problem = too_much(search)
    rows = people.tenants_with_figures(actor_of(request)).order_by("name", "slug")
    if problem:
        rows = rows.none()
    elif search:
        rows = rows.filter(Q(name__icontains=search) | Q(slug__icontains=search))
    page = Paginator(rows, TENANTS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "tenants",
        "page": page,
        "search": search,
        "problem": problem,
        "roles": dict(Role.choices),
    }
    return render(request, "tenants/tenants.html", context, status=422 if problem else 200)


@never_cache
@login_required
@require_GET
def tenant(request: HttpRequest, slug: str) -> HttpResponse:
    actor = actor_of(request)
    return tenant_page(request, actor, tenant_by_slug(actor, slug))


def owner_and_tenant(request: HttpRequest, slug: str) -> tuple[Actor, Tenant]:
    """Return the tenant and who asks. Raise NotThere for strangers, NotAllowed for all but its owners."""
    actor = actor_of(request)
    of = tenant_by_slug(actor, slug)
    require_owner(actor, of)
    return actor, of


@login_required
@require_POST
def add_member(request: HttpRequest, slug: str) -> HttpResponse:
    actor, of = owner_and_tenant(request, slug)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return tenant_page(request, actor, of, form=form, status=422)
    try:
        added = members.set_role(actor, of, **form.cleaned_data, was="")
    except (Conflict, Invalid) as refusal:
        audit.record_refusal(request, actor, refusal)
        show_refusal(form, refusal)
        return tenant_page(request, actor, of, form=form, status=refusal.status)
    words = {"name": added.user.username, "tenant": of.name, "role": added.get_role_display()}
    messages.success(request, _("%(name)s was added to %(tenant)s as %(role)s.") % words)
    return redirect("tenant", slug)


@login_required
@require_POST
def change_role(request: HttpRequest, slug: str, username: str) -> HttpResponse:
    actor, of = owner_and_tenant(request, slug)
    members.member(of, username)
    role = request.POST.get("role", "")
    if role not in Role.values:
        return redirect("tenant", slug)
    try:
        changed = members.set_role(actor, of, username, role, was=request.POST.get("was"))
    except Conflict as refusal:
        audit.record_refusal(request, actor, refusal)
        return tenant_page(request, actor, of, refused=(username, refusal, role), status=refusal.status)
    words = {"name": username, "role": changed.get_role_display()}
    messages.success(request, _("%(name)s has the role %(role)s now.") % words)
    return redirect("tenant", slug)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def remove_member(request: HttpRequest, slug: str, username: str) -> HttpResponse:
    """Show the consequences; on POST, remove the member."""
    actor, of = owner_and_tenant(request, slug)
    membership = members.member(of, username)
    is_myself = membership.user == actor.user
    refused = None
    if request.method == "POST":
        try:
            people.remove_person(actor, of, username, stop="stop" in request.POST)
        except Conflict as refusal:
            audit.record_refusal(request, actor, refusal)
            refused = refusal
        else:
            words = {"name": username, "tenant": of.name}
            messages.success(request, _("%(name)s is no longer in %(tenant)s.") % words)
            return redirect("tenants") if is_myself else redirect("tenant", slug)
    context = {
        "section": "tenants",
        "tenant": of,
        "seat": people.seats(of, [membership])[0],
        "is_myself": is_myself,
        "refused": refused,
    }
    return render(request, "tenants/remove.html", context, status=refused.status if refused else 200)


def tenant_page(
    request: HttpRequest,
    actor: Actor,
    of: Tenant,
    *,
    form: MemberForm | None = None,
    service_form: ServiceAccountForm | None = None,
    refused: tuple[str, Refusal, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    role = role_in(actor, of)
    may_change = role == Role.OWNER
    rows = of.memberships.filter(user__service_of=None).select_related("user")
    rows = rows.order_by(OWNERS_FIRST, "user__username")
    page = Paginator(rows, PEOPLE_PER_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "section": "tenants",
        "tenant": of,
        "role": role,
        "may_change": may_change,
        "page": page,
        "seats": people.seats(of, list(page.object_list)),
        "left_behind": people.inaccessible_workspaces(of) if may_change else [],
        "shares": shares(actor, [of]),
        "roles": Role.choices,
        "form": form or MemberForm(),
        "service_accounts": service_accounts.visible(actor).filter(service_of=of) if may_change else [],
        "service_form": service_form or ServiceAccountForm(),
        "refused": refused,
    }
    return render(request, "tenants/tenant.html", context, status=status)
