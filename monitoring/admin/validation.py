"""Admin page for GPU tests: begin them for a node or a pool, read the results, overrule a failed one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import MOST_AT_ONCE, Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage
from accounts.errors import Refusal
from accounts.rest.actors import actor_of
from accounts.trail import audit
from clusters.models import Node
from monitoring.models import Validation
from monitoring.validation import starting, words
from monitoring.validation.starting import Plan
from quotas.models import Pool

M = TypeVar("M", bound=Model)


class ValidateNodes(Previewed[Node]):
    """Admin action that tests GPUs, offered on the page of nodes."""

    name = "test_gpus"
    short_description = gettext_lazy("Test GPUs …")
    title = gettext_lazy("Test GPUs")
    button = gettext_lazy("Begin the tests")

    def notes(self) -> list[str]:
        return [words.what_it_is()]

    def effects(self, actor: Actor, rows: Sequence[Node]) -> list[Effect]:
        return [self._effect(plan) for plan in starting.plans(rows)]

    def _effect(self, plan: Plan) -> Effect:
        told = line(plan)
        whom = f"{plan.node} · {plan.node.cluster}"
        if why := told["why"]:
            return Effect(str(plan.node.pk), whom, refused=f"{why.message} {why.hint}".strip())
        return Effect(str(plan.node.pk), whom, (told["takes"],))

    def apply(self, actor: Actor, row: Node) -> bool:
        [plan] = starting.plans([row])
        starting.start(actor, plan)
        return True

    def done(self, count: int) -> str:
        return begun_words(count)


def begun_words(count: int) -> str:
    text = ngettext("%(count)d test has begun.", "%(count)d tests have begun.", count)
    return text % {"count": count}


class Overrule(Previewed[Validation]):
    name = "overrule"
    short_description = gettext_lazy("Use the node anyway …")
    title = gettext_lazy("Use nodes although their test failed")
    button = gettext_lazy("Use them")
    is_grave = True

    def notes(self) -> list[str]:
        return [_("A test that fails again takes the node's GPUs out again.")]

    def effect_on(self, row: Validation) -> Effect:
        if row.outcome != Validation.Outcome.FAILED:
            return Effect(str(row.pk), row.node, refused=_("This test did not fail."))
        if row.overruled_at:
            return Effect(str(row.pk), row.node, refused=_("It is overruled already."))
        return Effect(str(row.pk), row.node, (_("New runs may get its GPUs, whatever the test found."),))

    def apply(self, actor: Actor, row: Validation) -> bool:
        return starting.overrule(actor, row)

    def done(self, count: int) -> str:
        return ngettext("%(count)d test is overruled.", "%(count)d tests are overruled.", count) % {
            "count": count
        }


@admin.register(Validation)
class ValidationPage(ReadOnlyPage[Validation]):
    purpose = gettext_lazy(
        "A small CUDA program tests one free GPU of a node. A node whose test failed gets no new runs on "
        "its GPUs until a later test passes, or an admin allows it."
    )
    list_display = ("node", "result", "in_short", "asked_at", "asked_by", "took", "pool", "cluster")
    list_filter = ("outcome", "cluster", "pool")
    search_fields = ("node",)
    date_hierarchy = "asked_at"
    actions = (Overrule(),)
    change_list_template = "admin/monitoring/validation/change_list.html"
    fields = (
        "result", "in_short", "advice", "node", "cluster", "pool", "image", "asked_by", "asked_at", "started_at",
        "ended_at", "took", "overruled", "output",
    )  # fmt: skip
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Validation]:
        rows: QuerySet[Validation] = super().get_queryset(request)
        return rows.select_related("cluster", "pool", "asked_by", "overruled_by")

    def idle_fields(self, obj: Validation) -> dict[str, object]:
        return {
            "advice": not words.hint(obj),
            "overruled": not obj.overruled_at,
            "output": not obj.log,
            "started_at": not obj.started_at,
        }

    def buttons(self, request: HttpRequest, obj: Validation) -> list[tuple[str, str]]:
        may_be = obj.outcome == Validation.Outcome.FAILED and not obj.overruled_at
        return [Overrule().as_button] if may_be else []

    # --- begin

    def get_urls(self) -> list[URLPattern]:
        begin = self.admin_site.admin_view(self.begin_view)
        return [path("begin/", begin, name="monitoring_validation_begin"), *super().get_urls()]

    def begin_view(self, request: HttpRequest) -> HttpResponse:
        """Show what each node's test would take, or why none is possible now. A POST begins the chosen tests."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = plans_for(request.GET.get("pool", ""), request.GET.get("node", ""))
        is_cut = len(found) > MOST_AT_ONCE
        if is_cut:
            found = sorted(found, key=lambda plan: plan.why_not is not None)[:MOST_AT_ONCE]
        if request.method == "POST":
            chosen = set(request.POST.getlist("chosen"))
            self._begin(request, [plan for plan in found if str(plan.node.pk) in chosen])
            return HttpResponseRedirect(reverse("admin:monitoring_validation_changelist"))
        if is_cut:
            text = _("Choose at most %(count)d at once.") % {"count": MOST_AT_ONCE}
            self.message_user(request, text, messages.WARNING)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Test GPUs"),
            "opts": self.opts,
            "lines": [line(plan) for plan in found],
            "can_begin": any(plan.why_not is None for plan in found),
            "note": words.what_it_is(),
        }
        return TemplateResponse(request, "admin/monitoring/validation/begin.html", context)

    def _begin(self, request: HttpRequest, chosen: Sequence[Plan]) -> None:
        actor, begun = actor_of(request), 0
        for plan in chosen:
            try:
                starting.start(actor, plan)
                begun += 1
            except Refusal as refusal:
                audit.record_refusal(request, actor, refusal)
                self.message_user(request, f"{refusal.message} {refusal.hint}".strip(), messages.ERROR)
        if begun:
            self.message_user(request, begun_words(begun), messages.SUCCESS)
        elif not chosen:
            self.message_user(request, _("No node was chosen."), messages.INFO)

    # --- columns

    @admin.display(description=gettext_lazy("result"), ordering="outcome")
    def result(self, row: Validation) -> str:
        return row.get_outcome_display()

    @admin.display(description=gettext_lazy("what was found"))
    def in_short(self, row: Validation) -> str:
        return words.sentence(row)

    @admin.display(description=gettext_lazy("what to do"))
    def advice(self, row: Validation) -> str:
        return words.hint(row)

    @admin.display(description=gettext_lazy("took"))
    def took(self, row: Validation) -> str:
        if row.started_at is None or row.ended_at is None:
            return "–"
        return _("%(seconds)d s") % {"seconds": round((row.ended_at - row.started_at).total_seconds())}

    @admin.display(description=gettext_lazy("overruled by"))
    def overruled(self, row: Validation) -> str:
        return str(row.overruled_by or "–")

    @admin.display(description=gettext_lazy("log"))
    def output(self, row: Validation) -> SafeString:
        return format_html('<pre tabindex="0">{}</pre>', row.log)


def plans_for(pool: str, node: str) -> list[Plan]:
    """Return plans for one pool, for one node, or for all nodes in pools with GPUs."""
    if pool:
        pools = Pool.objects.exclude(resource_name="").select_related("cluster")
        return [plan for row in with_key(pools, pool) for plan in starting.plans_of(row)]
    nodes = Node.objects.order_by("cluster__slug", "name").select_related("cluster")
    if node:
        return starting.plans(with_key(nodes, node))
    return [plan for plan in starting.plans(nodes) if plan.pool is not None]


def with_key(rows: QuerySet[M], key: str) -> QuerySet[M]:
    """Return the row with this key, or no row: a key in an address may be malformed."""
    try:
        return rows.filter(pk=key)
    except (ValueError, ValidationError):
        return rows.none()


def line(plan: Plan) -> dict[str, Any]:
    why = words.refusal(plan.why_not) if plan.why_not else None
    return {"plan": plan, "takes": words.taken(plan.pool) if plan.pool else "", "why": why}
