"""Pages of the first-run guide, for admins: one page with all steps, and the form of one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts.access import Actor
from accounts.errors import SHOWN_IN_PLACE, Refusal
from accounts.forms import show_refusal
from accounts.once import done_once
from accounts.rest.actors import actor_of
from accounts.trail import audit
from clusters.adding import adding
from clusters.doctor import Check
from clusters.errors import ClusterError
from clusters.faults import explained
from clusters.isolation.deciding import may_launch
from clusters.isolation.networks import missing
from clusters.models import Cluster
from portal.first_run import doing
from portal.first_run.forms import ClusterForm, ImageForm, IsolationForm, PoolsForm, TenantForm
from portal.first_run.steps import CLUSTER, IMAGE, ISOLATION, POOLS, TENANT, TITLES, TRY, current, steps
from quotas.models import Pool
from quotas.pools.founding import missing_plans
from quotas.pools.nodes import whole_nodes
from workspaces.models import Workspace

Context = dict[str, Any]


@never_cache
@login_required
@sensitive_post_parameters("kubeconfig")
@require_http_methods(["GET", "POST"])
def first_run(request: HttpRequest, step: str = "") -> HttpResponse:
    """Show the guide at a step, or at the first that is not done; a POST does the step."""
    actor = actor_of(request)
    doing.require_admin(actor)
    found = steps()
    if step and step not in TITLES:
        raise Http404
    slug = step or current(found).slug
    context: Context = {}
    status = 200
    try:
        answer = STEPS[slug](request, actor, context)
        if answer is not None:
            return answer
    except SHOWN_IN_PLACE as refusal:
        audit.record_refusal(request, actor, refusal)
        _show(context, refusal)
    if request.method == "POST":
        status = 422
    context |= {"once": uuid4(), "section": "first-run", "steps": found, "slug": slug, "title": TITLES[slug]}
    return render(request, "portal/first_run.html", context, status=status)


def _show(context: Context, refusal: Refusal) -> None:
    form = context.get("form")
    if isinstance(form, forms.BaseForm):
        show_refusal(form, refusal, lambda name: "people" if name == "username" else name)
    else:
        context["refusal"] = refusal


def _next(request: HttpRequest, text: str) -> HttpResponse:
    messages.success(request, text)
    return redirect("first-run")


def _once(request: HttpRequest, actor: Actor, work: Callable[[], object], text: str) -> str:
    """Do the step and return what the page says of it. A second press of the button does nothing and says the same."""

    def outcome() -> str:
        work()
        return text

    return done_once(actor.user, request.POST, outcome)


# --- One function for each step. It fills in the page's context, and returns the answer once the step is done.


def connect(request: HttpRequest, actor: Actor, context: Context) -> HttpResponse | None:
    form = context["form"] = ClusterForm(request.POST or None)
    if not form.is_valid():
        return None
    cluster = form.cluster()
    try:
        seen = adding.look_at(cluster)
    except ClusterError as error:
        message, hint = explained(error, cluster)
        pasted = cluster.connection == Cluster.Connection.PASTED
        form.add_error("kubeconfig" if pasted else None, f"{message} {hint}".strip())
        return None
    lacking = seen.failures(Check.RIGHTS)
    if lacking and not form.cleaned_data["anyway"]:
        context["lacking"] = lacking
        return None
    text = ngettext(
        "%(name)s is connected: %(count)d node.", "%(name)s is connected: %(count)d nodes.", len(seen.nodes)
    ) % {"name": cluster.name, "count": len(seen.nodes)}
    text = _once(request, actor, lambda: adding.add(actor, cluster, seen), text)
    for finding in seen.failures():
        if finding.check not in (Check.RIGHTS, Check.POOLS, Check.ISOLATION):
            messages.warning(request, f"{finding.message} {finding.hint}".strip())
    return _next(request, text)


def isolate(request: HttpRequest, actor: Actor, context: Context) -> HttpResponse | None:
    cluster = next((one for one in Cluster.objects.all() if not may_launch(one)), None)
    if cluster is None:
        return redirect("first-run")
    form = context["form"] = IsolationForm(missing(cluster), request.POST or None, instance=cluster)
    context["cluster"] = cluster
    if not form.is_valid():
        return None
    doing.isolate(actor, form.instance, without=form.cleaned_data["without"])
    return _next(request, _("Workspaces can be launched in %(name)s.") % {"name": cluster.name})


def make_pools(request: HttpRequest, actor: Actor, context: Context) -> HttpResponse | None:
    clusters = list(Cluster.objects.all())
    if not clusters:
        return redirect("first-run")
    chosen = request.POST.get("cluster") or request.GET.get("cluster")
    cluster = next((one for one in clusters if one.slug == chosen), clusters[-1])
    plans = missing_plans(cluster)
    form = context["form"] = PoolsForm(plans, request.POST or None)
    context |= {"cluster": cluster, "clusters": clusters, "has_gpus": any(plan.total_gpus for plan in plans)}
    if not form.is_valid():
        return None
    chosen_plans = form.chosen()
    names = _(", ").join(plan.name for plan in chosen_plans)
    text = _("Pools created with their sizes: %(names)s.") % {"names": names}
    return _next(request, _once(request, actor, lambda: doing.make_pools(actor, cluster, chosen_plans), text))


def make_tenant(request: HttpRequest, actor: Actor, context: Context) -> HttpResponse | None:
    pools = list(Pool.objects.exclude(resource_name="").select_related("cluster"))
    with_gpus = [
        (pool, sum(room.units for room in whole_nodes(pool)) // pool.units_per_gpu) for pool in pools
    ]
    own = {"people": f"{actor.user.get_username()}, owner"}
    form = context["form"] = TenantForm(with_gpus, request.POST or None, initial=own)
    if not form.is_valid():
        return None
    asked = {name: form.cleaned_data[name] for name in ("name", "slug", "people")}
    text = _("Tenant %(name)s was created.") % {"name": asked["name"]}
    return _next(
        request,
        _once(request, actor, lambda: doing.make_tenant(actor, **asked, quotas=form.quotas()), text),
    )


def add_image(request: HttpRequest, actor: Actor, context: Context) -> HttpResponse | None:
    form = context["form"] = ImageForm(request.POST or None)
    if not form.is_valid():
        return None
    text = _("%(name)s can be launched.") % {"name": form.instance.name}
    return _next(request, _once(request, actor, lambda: doing.add_image(actor, form.instance), text))


def try_it(request: HttpRequest, actor: Actor, context: Context) -> HttpResponse | None:
    if request.method != "POST":
        context |= {
            "last": Workspace.objects.filter(owner=actor.user, deleted_at=None).first(),
        }
        return None
    return redirect("workspace", done_once(actor.user, request.POST, lambda: str(doing.try_it(actor).pk)))


STEPS: dict[str, Callable[[HttpRequest, Actor, Context], HttpResponse | None]] = {
    CLUSTER: connect,
    ISOLATION: isolate,
    POOLS: make_pools,
    TENANT: make_tenant,
    IMAGE: add_image,
    TRY: try_it,
}
