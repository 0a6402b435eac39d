"""Admin page for nodes: state, GPUs, workspaces on them, and the actions on a node."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.meters import meter
from accounts.admin.recorded import ReadOnlyPage
from clusters.models import Gpu, Node
from monitoring.admin.draining import NODE_ACTIONS, place_of
from monitoring.admin.validation import ValidateNodes
from monitoring.following import figures_for_page
from monitoring.health.rules import is_silent
from monitoring.nodes import Glance, NodeStory, glances, state_of
from monitoring.panels import gpu_panels
from workspaces.templatetags.berth import ago


class StateFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, str]]:
        return [("out", _("accepts nothing new")), ("broken", _("has broken GPUs")), ("gpus", _("has GPUs"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Node]) -> QuerySet[Node]:
        gpus = Gpu.objects.filter(cluster=OuterRef("cluster"), node=OuterRef("name"))
        is_out = Q(ready=False) | Q(unschedulable=True) | ~Q(out_code="") | ~Q(gpus_out_code="")
        chosen = {
            "out": is_out,
            "broken": Q(Exists(gpus.exclude(out_code=""))),
            "gpus": Q(Exists(gpus)),
        }
        return rows.filter(chosen.get(self.value() or "", Q()))


@admin.register(Node)
class NodePage(ReadOnlyPage[Node]):
    purpose = gettext_lazy(
        "The nodes of all clusters as last seen, and what their agents report about their GPUs."
    )
    list_display = ("name", "state", "gpus", "busy", "runs", "troubles", "versions", "last_report")
    list_filter = (StateFilter, "cluster")
    search_fields = ("name",)
    actions = (*NODE_ACTIONS, ValidateNodes())
    change_form_template = "admin/clusters/node/change_form.html"
    fields = ("state", "cluster", "last_report")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Node]:
        return super().get_queryset(request).select_related("cluster")

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Add a glance to each node of this page, in a few queries for all."""
        found = super().get_changelist_instance(request)
        told = glances(list(found.result_list))
        for node in found.result_list:
            node.glance = told[node.cluster_id, node.name]
        return found

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if node := context.get("original"):
            story = NodeStory(node)
            node.glance = story.glance  # the node's fields and buttons use the same glance
            figures = story.figures
            memory_mib = max((gpu.memory_mib or 0 for gpu in story.glance.gpus), default=0)
            context |= {
                "story": story,
                "panels": gpu_panels(figures, memory_mib or None) if story.glance.gpus else [],
                "figures": figures_for_page(figures),
            }
        return super().render_change_form(request, context, *args, **kwargs)

    def public_address(self, obj: Node) -> str:
        return reverse("gpus")

    def buttons(self, request: HttpRequest, obj: Node) -> list[tuple[str, str]]:
        place = place_of(obj, self.glance(obj))
        return [action.as_button for action in NODE_ACTIONS if action.is_offered(place)]

    def glance(self, node: Any) -> Glance:
        """Return the node's glance. Read it if the list of nodes has not."""
        if not hasattr(node, "glance"):
            node.glance = glances([node])[node.cluster_id, node.name]
        found: Glance = node.glance
        return found

    # --- columns

    @admin.display(description=gettext_lazy("state"))
    def state(self, node: Any) -> SafeString:
        level, words = state_of(node, self.glance(node))
        return format_html('<span class="said-{}">{}</span>', level, words)

    @admin.display(description=gettext_lazy("GPUs"))
    def gpus(self, node: Any) -> str:
        gpus = node.glance.gpus
        if not gpus:
            return "–"
        names = _(", ").join(sorted({gpu.name.removeprefix("NVIDIA ") for gpu in gpus if gpu.name}))
        return f"{len(gpus)} × {names}" if names else str(len(gpus))

    @admin.display(description=gettext_lazy("busy"))
    def busy(self, node: Any) -> SafeString | str:
        percent = node.glance.busy_percent
        return "–" if percent is None else meter(percent, 100, f"{percent}%")

    @admin.display(description=gettext_lazy("runs"))
    def runs(self, node: Any) -> int:
        return int(node.glance.runs)

    @admin.display(description=gettext_lazy("troubles"))
    def troubles(self, node: Any) -> int:
        return len(node.glance.troubles)

    @admin.display(description=gettext_lazy("driver, kernel"))
    def versions(self, node: Any) -> str:
        driver = node.glance.agent.driver_version if node.glance.agent else ""
        return _(", ").join(filter(None, (driver, node.system.get("kernelVersion", "")))) or "–"

    @admin.display(description=gettext_lazy("last report"))
    def last_report(self, node: Any) -> SafeString | str:
        """Return when the node's agent was last heard."""
        agent = self.glance(node).agent
        if agent is None:
            return _("no agent")
        at = ago(agent.seen_at)
        if is_silent(agent, timezone.now()):
            words = SafeString(_("silent, %(ago)s") % {"ago": at})  # `at` is markup
            return format_html('<span class="said-bad">{}</span>', words)
        return format_html("{}{}", at, _(" (simulated)") if agent.is_simulated else "")
