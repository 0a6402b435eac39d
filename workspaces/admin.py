"""Admin pages for images and sizes, and for finding and stopping anybody's workspace."""

from __future__ import annotations

from math import ceil
from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage, RecordedPage
from quotas import passes
from quotas.models import Flavor
from quotas.scheduling import as_gpus
from workloads.models import Image

from .models import Desired, Phase, Workspace
from .runs import lifecycle


class StopWorkspaces(Previewed[Workspace]):
    name = "stop"
    short_description = gettext_lazy("Stop, keep files …")
    title = gettext_lazy("Stop workspaces")
    button = gettext_lazy("Stop, keep files")
    is_grave = True

    def notes(self) -> list[str]:
        return [
            _(
                "Homes and disks stay. What is only in memory is lost: kernels, unsaved notebooks, running programs."
            ),
            _("Its owner sees in its activity who stopped it, and can start it again."),
        ]

    def effect_on(self, row: Workspace) -> Effect:
        pk = str(row.pk)
        facts = {"name": row.name, "user": row.owner.username, "tenant": row.tenant}
        whom = _("%(name)s of %(user)s in %(tenant)s") % facts
        if row.desired != Desired.RUNNING:
            return Effect(pk, whom, refused=_("It is stopped, or about to be."))
        if row.phase == Phase.WAITING:
            return Effect(pk, whom, (_("It is only waiting: it leaves the queue."),))
        gpus = as_gpus(row.units, row.pool.units_per_gpu)
        freed = ngettext(
            "%(gpus)s GPU of %(pool)s becomes free.", "%(gpus)s GPUs of %(pool)s become free.", ceil(gpus)
        ) % {"gpus": gpus, "pool": row.pool}
        return Effect(pk, whom, (_("Its programs are ended."), *([freed] if row.units else [])))

    def apply(self, actor: Actor, row: Workspace) -> bool:
        return lifecycle.stop(actor, row)

    def done(self, count: int) -> str:
        return ngettext("%(count)d workspace stops.", "%(count)d workspaces stop.", count) % {"count": count}


class CountsWorkspaces(RecordedPage[Any]):
    """Page with a column for the number of undeleted workspaces of each row."""

    field: str  # of a workspace

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        there = Workspace.objects.filter(**{self.field: OuterRef("pk")}, deleted_at__isnull=True)
        count = there.order_by().values(self.field).annotate(count=Count("pk")).values("count")
        rows: QuerySet[Any] = super().get_queryset(request).annotate(count_used=Coalesce(Subquery(count), 0))
        return rows

    @admin.display(description=gettext_lazy("workspaces"), ordering="count_used")
    def used_by(self, row: Any) -> int:
        return int(row.count_used)


def use_text(count: int, instead: str) -> str:
    if not count:
        return ""
    used = ngettext("%(count)d workspace uses it.", "%(count)d workspaces use it.", count) % {"count": count}
    return f"{used} {instead}".strip()


@admin.register(Image)
class ImagePage(CountsWorkspaces):
    field = "image"
    purpose = gettext_lazy("Container images for workspaces: the user they run as, and what they offer.")
    list_display = ("name", "reference", "offers_jupyter", "offers_ssh", "used_by", "is_active")
    list_editable = ("is_active",)
    list_filter = ("is_active", "offers_jupyter", "offers_ssh")
    search_fields = ("name", "slug", "reference")
    prepopulated_fields = {"slug": ("name",)}
    fieldsets = (
        (None, {"fields": ("name", "slug", "description", "reference", "is_active")}),
        (gettext_lazy("Offers"), {"fields": ("offers_jupyter", "offers_ssh")}),
        (
            gettext_lazy("Runs as"),
            {
                "fields": ("uid", "gid", "username", "home", "shell"),
                "description": gettext_lazy("As the image was built; never root."),
            },
        ),
    )

    def public_address(self, obj: Image) -> str:
        return f"{reverse('launch')}?image={obj.slug}" if obj.is_active else ""

    def why_kept(self, obj: Image) -> str:
        if not Workspace.objects.filter(image=obj).exists():
            return ""
        live = Workspace.objects.filter(image=obj, deleted_at=None).count()
        return use_text(live, _("Take it out of the catalogue instead: untick “offered”.")) or _(
            "Workspaces that are deleted by now used it, and stay on record. Untick “offered” instead."
        )


@admin.register(Flavor)
class FlavorPage(CountsWorkspaces):
    """Admin page of sizes. It is in this app and not in quotas, because workspaces use the sizes."""

    field = "flavor"
    purpose = gettext_lazy(
        "Ready-made sizes: GPUs, cores and memory of one pool. Existing workspaces keep their size."
    )
    list_display = ("name", "slug", "pool", "units", "cpu_millicores", "memory_mib", "used_by")
    list_filter = ("pool",)
    list_select_related = ("pool",)
    search_fields = ("slug", "name")
    prepopulated_fields = {"slug": ("name",)}
    autocomplete_fields = ("pool",)

    def public_address(self, obj: Flavor) -> str:
        return f"{reverse('launch')}?flavor={obj.slug}"

    def after_change(self, request: HttpRequest, obj: Any) -> None:
        passes.want_everywhere()

    def why_kept(self, obj: Flavor) -> str:
        live = Workspace.objects.filter(flavor=obj, deleted_at=None).count()
        return use_text(live, _("Delete it once they are deleted or use another size."))


@admin.register(Workspace)
class WorkspacePage(ReadOnlyPage[Workspace]):
    """Read-only page for finding and stopping workspaces: only use cases change the rows."""

    purpose = gettext_lazy("Workspaces of all people. The activity of each is on its own page.")
    list_display = ("name", "owner", "tenant", "size", "phase", "node", "created_at", "page")
    list_filter = ("phase", ("deleted_at", admin.EmptyFieldListFilter), "tenant", "pool", "image")
    list_select_related = ("owner", "tenant", "pool", "flavor")
    search_fields = ("name", "owner__username", "node", "=id")
    date_hierarchy = "created_at"
    actions = (StopWorkspaces(),)
    fields = (
        "name", "owner", "tenant", "image", "pool", "flavor", "units", "cpu_millicores", "memory_mib", "disk_mib",
        "desired", "phase", "step", "step_since", "node", "created_at", "started_at", "ready_at", "deleted_at",
        "run", "pod_uid", "dirty_since",
    )  # fmt: skip

    def public_address(self, obj: Workspace) -> str:
        return reverse("workspace", args=[obj.pk])

    def buttons(self, request: HttpRequest, obj: Workspace) -> list[tuple[str, str]]:
        return [StopWorkspaces().as_button] if obj.desired == Desired.RUNNING else []

    @admin.display(description=gettext_lazy("page"))
    def page(self, workspace: Workspace) -> SafeString:
        return format_html('<a href="{}">{}</a>', self.public_address(workspace), _("Open"))

    @admin.display(description=gettext_lazy("size"), ordering="units")
    def size(self, workspace: Workspace) -> str:
        facts = {"pool": workspace.pool, "gpus": as_gpus(workspace.units, workspace.pool.units_per_gpu)}
        return _("%(gpus)s GPU of %(pool)s") % facts if workspace.units else str(workspace.pool)
