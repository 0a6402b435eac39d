"""The launch page, and the live answer beside its form."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import Actor, tenant_by_slug
from accounts.errors import SHOWN_IN_PLACE
from accounts.models import Tenant
from accounts.once import done_once
from accounts.rest.actors import actor_of
from accounts.tenancy import current_tenant
from storage import connections
from storage.mounts import choosing
from workloads.models import Image
from workspaces.launch import launch as launching
from workspaces.launch.clone import free_name
from workspaces.launch.suggestions import PoolChoice, friendly_name, launch_tenants, pool_choices

from . import prefill
from .forms import LaunchForm
from .live_answer import live_answer


@never_cache
@login_required
@sensitive_post_parameters("env", "secret_env")
@require_http_methods(["GET", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    tenants = launch_tenants(request)
    if not tenants:
        return render(request, "workspaces/no_tenant.html", {"section": "workspaces"})
    if request.method == "GET":
        return empty_form(request, actor, tenants)
    tenant = among(tenants, request.POST.get("tenant"))
    pools = pool_choices(actor, tenant)
    form = form_for(actor, request.POST, {}, tenants, pools)
    only_looks = "look" in request.POST  # the button for people without scripts
    if form.is_valid() and not only_looks:
        try:
            return redirect("workspace", id=launch_once(actor, form, request))
        except SHOWN_IN_PLACE as refusal:
            form.refuse(refusal)
    context = {"form": form, "pools": pools, "tenants": tenants, "refused": not only_looks}
    return page(request, actor, tenant, form, context, status=200 if only_looks else 422)


def empty_form(request: HttpRequest, actor: Actor, tenants: list[Tenant]) -> HttpResponse:
    """Render the form, filled in from the last launch, from a workspace to launch again, or from the link."""
    link = {name: str(value) for name, value in request.GET.items()}
    like, values, notes = prefill.beginning(actor, link)
    again = like if "again" in link else None
    chosen = current_tenant(request)
    wanted = [link.get("tenant"), values.get("tenant")]
    if chosen and not again:
        wanted.insert(1, chosen.slug)
    name = free_name(actor, again) if again else friendly_name(actor)
    tenant = among(tenants, *wanted)
    pools = pool_choices(actor, tenant)
    form = form_for(actor, None, {"name": name} | values | {"tenant": tenant.slug}, tenants, pools)
    notes += prefill.fill_in(form, link, pools, request.GET.getlist("env"))
    asked = form_for(actor, form.untouched(), {}, tenants, pools)
    asked.is_valid()
    context = {
        "form": form, "pools": pools, "tenants": tenants, "notes": notes,
        "like": like, "again": again, "by_link": prefill.describes_a_launch(link),
    }  # fmt: skip
    return page(request, actor, tenant, asked, context)


@never_cache
@login_required
@sensitive_post_parameters("env", "secret_env")
@require_POST
def launch_answer(request: HttpRequest) -> HttpResponse:
    """Forecast for the form as it is filled in now. By POST: typed values do not belong in a log of addresses."""
    actor = actor_of(request)
    tenant = tenant_by_slug(actor, request.POST.get("tenant", ""))
    form = form_for(actor, request.POST, {}, [tenant], pool_choices(actor, tenant))
    form.is_valid()
    return render(request, "workspaces/_answer_live.html", live_answer(actor, tenant, form, root_of(request)))


def launch_once(actor: Actor, form: LaunchForm, request: HttpRequest) -> str:
    """Launch. A second click on the button leads to the same workspace; without the form's token it launches again."""

    def work() -> str:
        return str(launching.launch(actor, form.spec()).pk)

    return done_once(actor.user, request.POST, work) if form.cleaned_data.get("once") else work()


def page(
    request: HttpRequest,
    actor: Actor,
    tenant: Tenant,
    asked: LaunchForm,
    context: dict[str, Any],
    status: int = 200,
) -> HttpResponse:
    """Render the whole page. `asked` is the form as it would be sent."""
    answer = live_answer(actor, tenant, asked, root_of(request))
    return render(
        request, "workspaces/launch.html", {"section": "workspaces"} | context | answer, status=status
    )


def form_for(
    actor: Actor, data: Any, first: dict[str, Any], tenants: list[Tenant], pools: list[PoolChoice]
) -> LaunchForm:
    images = list(Image.objects.filter(is_active=True))
    return LaunchForm(
        data,
        first,
        tenants=tenants,
        images=images,
        pools=pools,
        volumes=choosing.offers(actor),
        connections=connections.visible(actor),
    )


def among(tenants: list[Tenant], *wanted: str | None) -> Tenant:
    """Return the first of the wanted tenants in which the person may launch, else any."""
    by_slug = {tenant.slug: tenant for tenant in tenants}
    return next((by_slug[slug] for slug in wanted if slug in by_slug), tenants[0])


def root_of(request: HttpRequest) -> str:
    return request.build_absolute_uri("/").rstrip("/")
