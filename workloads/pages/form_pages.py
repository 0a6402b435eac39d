"""Page with the form of a launch or a job, and the live answer beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from accounts.access import Actor, tenant_by_slug
from accounts.errors import SHOWN_IN_PLACE
from accounts.models import Tenant
from accounts.once import done_once
from accounts.rest.actors import actor_of
from accounts.tenancy import current_tenant
from storage import connections
from storage.mounts import choosing
from workloads.images import catalogue, registries
from workloads.sizes.choices import PoolChoice, best_now, launch_tenants, pool_choices, with_room_first
from workloads.sizes.estimate import Alternative

from . import prefill
from .answer import fills, live_answer
from .forms import WorkloadForm

Form = TypeVar("Form", bound=WorkloadForm)


@dataclass(frozen=True)
class Beginning:
    """First values of a form. `is_copy`: of something that the link names. `context`: what the page says about that.

    `is_last`: of what the person started last; its size gives way to one that starts now.
    """

    values: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_copy: bool = False
    is_last: bool = False
    context: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FormPage(Generic[Form]):
    """A form's page. `begin` gives its first values, `submit` does what it asks for and returns an id for `done`."""

    form: type[Form]
    section: str
    template: str
    same: str  # template of the same for scripts
    no_tenant: str  # template for a person who may start nothing
    begin: Callable[[Actor, Mapping[str, str]], Beginning]
    submit: Callable[[Actor, Form], str]
    done: str  # name of the page to go to
    more: Callable[[Actor], Mapping[str, Any]] = lambda _actor: {}  # for the template

    def respond(
        self, request: HttpRequest, instead: Callable[[Actor, Form], str] | None = None
    ) -> HttpResponse:
        """Show the form, or do what it asks for. `instead`: do this with a valid form; it returns an address."""
        actor = actor_of(request)
        tenants = launch_tenants(request)
        if not tenants:
            return render(request, self.no_tenant, {"section": self.section})
        if request.method == "GET":
            return self._empty(request, actor, tenants)
        tenant = among(tenants, request.POST.get("tenant"))
        pools = with_room_first(pool_choices(actor, tenant), tenant, actor.user)
        form = self.form(request.POST, {}, **self._offered(actor, tenants, pools))
        only_looks = "look" in request.POST  # the button for people without scripts
        if form.is_valid() and not only_looks:
            try:
                if instead:
                    return redirect(instead(actor, form))
                return redirect(self.done, id=self._once(actor, form, request))
            except SHOWN_IN_PLACE as refusal:
                form.refuse(refusal)
        context = {"form": form, "pools": pools, "tenants": tenants, "refused": not only_looks}
        context |= live_answer(actor, tenant, form, root_of(request)) | {"did_instead": bool(instead)}
        return self._page(request, actor, context, status=200 if only_looks else 422)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Forecast for the form as it is filled in now. By POST: typed values do not belong in a log of addresses."""
        actor = actor_of(request)
        tenant = tenant_by_slug(actor, request.POST.get("tenant", ""))
        form = self.form(request.POST, {}, **self._offered(actor, [tenant], pool_choices(actor, tenant)))
        form.is_valid()
        context = live_answer(actor, tenant, form, root_of(request)) | {"same": self.same}
        return render(request, "workloads/_answer_live.html", context)

    def _empty(self, request: HttpRequest, actor: Actor, tenants: list[Tenant]) -> HttpResponse:
        """Render the form, filled in by `begin` and by the link."""
        link = {name: str(value) for name, value in request.GET.items()}
        first = self.begin(actor, link)
        chosen = current_tenant(request)
        wanted = [link.get("tenant"), first.values.get("tenant")]
        if chosen and not first.is_copy:
            wanted.insert(1, chosen.slug)
        tenant = among(tenants, *wanted)
        pools = with_room_first(pool_choices(actor, tenant), tenant, actor.user)
        offered = self._offered(actor, tenants, pools)
        best = best_now(pools)
        values = {"flavor": best.slug if best else None} | first.values | {"tenant": tenant.slug}
        form = self.form(None, values, **offered)
        fallen = prefill.fell_away(form, link)
        if "flavor" in form.not_offered and best:
            form.initial["flavor"] = best.slug
        notes = first.notes + prefill.fill_in(form, link, pools, request.GET.getlist("env"))
        answer = self._as_sent(request, actor, tenant, form, offered)
        context: dict[str, Any] = {}
        if first.is_last and not {"flavor", "pool"} & link.keys() and (instead := starting_now(answer)):
            context = {"waiting_size": answer["size"], "instead_of_last": instead.size}
            form = self.form(None, dict(form.initial) | fills(instead), **offered)
            answer = self._as_sent(request, actor, tenant, form, offered)
        context |= {"form": form, "pools": pools, "tenants": tenants, "notes": notes, "fallen": fallen}
        context |= first.context | {"by_link": prefill.describes_all(link)}
        return self._page(request, actor, context | answer)

    def _as_sent(
        self, request: HttpRequest, actor: Actor, tenant: Tenant, form: Form, offered: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the answer to the form as it would be sent."""
        asked = self.form(form.untouched(), {}, **offered)
        asked.is_valid()
        return live_answer(actor, tenant, asked, root_of(request))

    def _offered(self, actor: Actor, tenants: list[Tenant], pools: list[PoolChoice]) -> dict[str, Any]:
        """Return what a form offers: read once for the form and for the form as it would be sent."""
        return {
            "actor": actor,
            "tenants": tenants,
            "catalogue": list(catalogue()),
            "registries": registries(tenants),
            "pools": pools,
            "volumes": choosing.offers(actor),
            "connections": connections.visible(actor),
        }

    def _once(self, actor: Actor, form: Form, request: HttpRequest) -> str:
        """Do it. A second click on the button leads to the same."""
        return done_once(actor.user, request.POST, lambda: self.submit(actor, form))

    def _page(
        self, request: HttpRequest, actor: Actor, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        more = {"section": self.section, "same": self.same, **self.more(actor)}
        return render(request, self.template, more | context, status=status)


def starting_now(answer: dict[str, Any]) -> Alternative | None:
    """Return the nearest size that starts now, with a GPU if one is asked for; None if the asked one does, too."""
    forecast, size = answer.get("forecast"), answer.get("size")
    if not forecast or forecast["starts_now"]:
        return None
    others: list[Alternative] = [one["other"] for one in answer["alternatives"]]
    return next(
        (one for one in others if one.minutes is None and bool(one.size.units) == bool(size and size.units)),
        None,
    )


def among(tenants: list[Tenant], *wanted: str | None) -> Tenant:
    """Return the first of the wanted tenants in which the person may start something, else any."""
    by_slug = {tenant.slug: tenant for tenant in tenants}
    return next((by_slug[slug] for slug in wanted if slug in by_slug), tenants[0])


def root_of(request: HttpRequest) -> str:
    return request.build_absolute_uri("/").rstrip("/")
