"""Admin page of pools: nodes, sizes, quotas, and taking a pool out of use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.fields import OwnFields
from accounts.admin.previews import Effect, Previewed
from quotas.admin.pool_form import FlavorForm, FlavorRows, NodeLine, PoolForm, lines, summary
from quotas.admin.quotas import QuotaInline
from quotas.admin.shared import ConfirmsLowering, gpus_meter
from quotas.allowed.usage import held_in_pools
from quotas.models import Claim, Flavor, Pool
from quotas.pools import health, opening
from quotas.pools.nodes import nodes_of

# Fields that select the pool's nodes, and how many GPUs they count as.
MATCHING = ("match_product", "match_gpu_memory_mib", "match_compute_capability", "match_ecc")
CUTTING = ("sharing", "resource_name", "units_per_gpu", "mig_profile")
CHOOSING = {"cluster", *MATCHING, "node_labels", "tolerations", *CUTTING}
DESCRIBING = ("gpu_product", "gpu_memory_mib", "unit_memory_mib", "compute_capability", "ecc")
MOST_SHOWN = 50


class ClosePools(Previewed[Pool]):
    name = "close"
    short_description = gettext_lazy("Take out of use …")
    title = gettext_lazy("Take pools out of use")
    button = gettext_lazy("Take out of use")
    is_grave = True

    def notes(self) -> list[str]:
        return [
            _(
                "Nothing new starts there, and it cannot be chosen for a launch. Nothing is stopped or deleted."
            )
        ]

    def effects(self, actor: Actor, rows: Sequence[Pool]) -> list[Effect]:
        running, waiting = people_of(rows, Claim.State.ADMITTED), people_of(rows, Claim.State.WAITING)
        return [
            Effect(str(pool.pk), pool.name, (goes_on(running[pool.pk]), goes_on_waiting(waiting[pool.pk])))
            if pool.is_open
            else Effect(str(pool.pk), pool.name, refused=_("It is out of use already."))
            for pool in rows
        ]

    def apply(self, actor: Actor, row: Pool) -> bool:
        return opening.set_open(actor, row, is_open=False)

    def done(self, count: int) -> str:
        return ngettext("%(count)d pool is out of use.", "%(count)d pools are out of use.", count) % {
            "count": count
        }


class OpenPools(Previewed[Pool]):
    name = "open"
    short_description = gettext_lazy("Put into use …")
    title = gettext_lazy("Put pools into use")
    button = gettext_lazy("Put into use")

    def effects(self, actor: Actor, rows: Sequence[Pool]) -> list[Effect]:
        waiting = people_of(rows, Claim.State.WAITING)
        return [
            Effect(str(pool.pk), pool.name, refused=_("It is in use."))
            if pool.is_open
            else Effect(str(pool.pk), pool.name, (starts(waiting[pool.pk]),))
            for pool in rows
        ]

    def apply(self, actor: Actor, row: Pool) -> bool:
        return opening.set_open(actor, row, is_open=True)

    def done(self, count: int) -> str:
        return ngettext("%(count)d pool is in use again.", "%(count)d pools are in use again.", count) % {
            "count": count
        }


def people_of(pools: Sequence[Pool], state: str) -> defaultdict[UUID, list[str]]:
    """Return user names by pool, one per claim in this state. One query."""
    found: defaultdict[UUID, list[str]] = defaultdict(list)
    claims = Claim.objects.filter(pool__in=pools, state=state).order_by("user__username")
    for pool, name in claims.values_list("pool_id", "user__username"):
        found[pool].append(name)
    return found


def goes_on(people: list[str]) -> str:
    if not people:
        return _("Nothing runs there.")
    text = ngettext(
        "%(count)d running workspace is not affected (%(people)s).",
        "%(count)d running workspaces are not affected (%(people)s).",
        len(people),
    )
    return _named(text, people)


def goes_on_waiting(people: list[str]) -> str:
    if not people:
        return _("No requests wait for it.")
    text = ngettext(
        "%(count)d request keeps waiting until the pool is in use again (%(people)s).",
        "%(count)d requests keep waiting until the pool is in use again (%(people)s).",
        len(people),
    )
    return _named(text, people)


def starts(people: list[str]) -> str:
    if not people:
        return _("People can choose it again. No requests wait for it.")
    text = ngettext(
        "%(count)d waiting request may start (%(people)s).",
        "%(count)d waiting requests may start (%(people)s).",
        len(people),
    )
    return _named(text, people)


def _named(text: str, people: list[str]) -> str:
    return text % {"count": len(people), "people": _(", ").join(sorted(set(people)))}


class FlavorInline(OwnFields, admin.TabularInline[Flavor, Any]):
    """Sizes to add and change. A size is deleted on its own page, which lists who uses it."""

    model = Flavor
    form = FlavorForm
    formset = FlavorRows
    extra = 0
    can_delete = False
    show_change_link = True
    fields = ("name", "slug", "units", "cpu_millicores", "memory_mib")
    prepopulated_fields = {"slug": ("name",)}


class InUseFilter(admin.SimpleListFilter):
    title = gettext_lazy("holds something")
    parameter_name = "held"

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, str]]:
        return [("waits", _("somebody waits")), ("runs", _("something runs")), ("idle", _("nothing runs"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Pool]) -> QuerySet[Pool]:
        waits, runs = (
            Q(pk__in=Claim.objects.filter(state=state).values("pool"))
            for state in (Claim.State.WAITING, Claim.State.ADMITTED)
        )
        chosen = {"waits": waits, "runs": runs, "idle": ~runs}
        return rows.filter(chosen.get(self.value() or "", Q()))


@admin.register(Pool)
class PoolPage(ConfirmsLowering[Pool]):
    purpose = gettext_lazy("Sets of nodes, chosen by their labels, with one way of sharing a GPU.")
    list_display = ("name", "cluster", "gpu", "in_use", "nodes_seen", "waiting", "is_open")
    list_filter = ("is_open", InUseFilter, "cluster", "sharing")
    list_select_related = ("cluster",)
    search_fields = ("slug", "name", "gpu_product")
    prepopulated_fields = {"slug": ("name",)}
    inlines = (FlavorInline, QuotaInline)
    actions = (ClosePools(), OpenPools())
    readonly_fields = ("is_open",)
    form = PoolForm
    change_form_template = "admin/quotas/pool/change_form.html"
    fieldsets = (
        (None, {"fields": ("name", "slug", "cluster", "is_open")}),
        (
            gettext_lazy("Which nodes"),
            {
                "fields": (*MATCHING, "node_labels", "tolerations"),
                "description": gettext_lazy(
                    "A node belongs to the pool when it matches all of this; empty fields are ignored. ECC "
                    "is read from the label berth.dev/gpu.ecc (true or false), because GPU Feature "
                    "Discovery does not report it. Berth sets it on nodes with an agent; on others you set "
                    "it."
                ),
            },
        ),
        (
            gettext_lazy("Sharing"),
            {
                "fields": (*CUTTING, "one_unit_each"),
                "description": gettext_lazy(
                    "How the nodes already share a GPU: Berth does not configure them. docs/pools.md "
                    "explains what to fill in."
                ),
            },
        ),
        (
            gettext_lazy("Description for people"),
            {"fields": (*DESCRIBING, "weight")},
        ),
        (
            gettext_lazy("Pods"),
            {"fields": ("runtime_class", "extra_resources", "image_pull_secrets", "driver_path")},
        ),
        (
            gettext_lazy("Overcommit"),
            {
                "fields": ("cpu_overcommit", "memory_overcommit"),
                "description": gettext_lazy(
                    "1: every workspace is guaranteed its full size. 2: it is guaranteed half of it."
                ),
            },
        ),
    )

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Preview for “See its nodes first”: save, read the nodes, and roll back."""
        if request.method != "POST" or "_nodes" not in request.POST:
            return super().changeform_view(request, *args, **kwargs)
        with transaction.atomic():
            response = super().changeform_view(request, *args, **kwargs)
            pool: Pool | None = getattr(request, "saved_pool", None)
            nodes = lines(pool) if pool else []
            transaction.set_rollback(True)
        return response if pool is None else self._nodes_page(request, pool, nodes)

    def save_model(self, request: HttpRequest, obj: Pool, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        request.saved_pool = obj  # type: ignore[attr-defined]
        if set(form.changed_data) & CHOOSING:
            nodes = lines(obj)
            level = messages.INFO if nodes else messages.WARNING
            self.message_user(request, summary(obj, nodes), level)

    def _nodes_page(self, request: HttpRequest, pool: Pool, nodes: list[NodeLine]) -> HttpResponse:
        return self.page_after_rollback(
            request,
            "admin/quotas/pool/nodes.html",
            "_nodes",
            title=_("Nodes of %(pool)s") % {"pool": pool.name},
            summary=summary(pool, nodes),
            nodes=nodes[:MOST_SHOWN],
            more=max(0, len(nodes) - MOST_SHOWN),
        )

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Add nodes, use and queue length to the pools of this page, with a few queries for all."""
        found = super().get_changelist_instance(request)
        pools = list(found.result_list)
        nodes, held = nodes_of(pools, with_runs=False), held_in_pools({pool.pk for pool in pools})
        waiting = Claim.objects.filter(pool__in=pools, state=Claim.State.WAITING).order_by()
        counts = dict(waiting.values_list("pool_id").annotate(count=Count("pk")))
        for pool in found.result_list:
            pool.seen, pool.held, pool.count_waiting = nodes[pool.pk], held[pool.pk], counts.get(pool.pk, 0)
        return found

    def buttons(self, request: HttpRequest, obj: Pool) -> list[tuple[str, str]]:
        return [(ClosePools() if obj.is_open else OpenPools()).as_button]

    @admin.display(description=gettext_lazy("GPU"), ordering="gpu_product")
    def gpu(self, pool: Pool) -> SafeString | str:
        """Product and way of sharing, in one column: eight columns are wider than a screen."""
        if not pool.has_gpus:
            return "–"
        product = pool.gpu_product.removeprefix("NVIDIA-")
        return format_html('{}<div class="muted">{}</div>', product, pool.get_sharing_display())

    @admin.display(description=gettext_lazy("GPUs in use"))
    def in_use(self, pool: Any) -> SafeString | str:
        if not pool.has_gpus:
            return "–"
        return gpus_meter(pool, pool.held, sum(room.units for room in pool.seen.whole))

    @admin.display(description=gettext_lazy("nodes ready"))
    def nodes_seen(self, pool: Any) -> str:
        """Number of ready nodes, and the problems of the others."""
        said = _("%(ready)d of %(all)d") % {"ready": len(pool.seen.healthy), "all": len(pool.seen.whole)}
        why = health.words(health.told(pool, pool.seen.out))
        if tainted := pool.seen.out.tainted:
            text = ngettext(
                "%(n)d node is reserved for others.", "%(n)d nodes are reserved for others.", tainted
            )
            why.append(text % {"n": tainted})
        return _("%(ready)s: %(why)s") % {"ready": said, "why": " ".join(why)} if why else said

    @admin.display(description=gettext_lazy("waits"))
    def waiting(self, pool: Any) -> int:
        return int(pool.count_waiting)

    def about(self, obj: Pool) -> Q:
        return super().about(obj) | Q(
            target_kind="flavor", target_id__in=[str(f.pk) for f in obj.flavors.all()]
        )

    def why_kept(self, obj: Pool) -> str:
        live = obj.claims.exclude(state=Claim.State.RELEASED).count()
        if live:
            return ngettext(
                "%(count)d workspace or job runs or waits there. Take the pool out of use, and stop it first.",
                "%(count)d workspaces or jobs run or wait there. Take the pool out of use, and stop them first.",
                live,
            ) % {"count": live}
        if obj.bookings.exists():
            return _("Its bookings are kept on record. Take the pool out of use instead.")
        if obj.claims.exists():
            return _("Its history is kept on record. Take the pool out of use instead; nobody sees it then.")
        return ""
