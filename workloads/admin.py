"""Admin pages for images and sizes, with the number of workloads that use each, and what pages of workloads share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.recorded import ReadOnlyPage, RecordedPage
from quotas import passes
from quotas.admin.pool_form import FlavorForm
from quotas.models import Flavor
from quotas.scheduling import as_gpus

from .models import Image, Workload


def kinds() -> list[type[Workload]]:
    """Return the models of workloads: of workspaces, and of jobs."""
    return [model for model in apps.get_models() if issubclass(model, Workload)]


class DeletedFilter(admin.SimpleListFilter):
    """Leaves deleted ones out, unless they are asked for."""

    title = gettext_lazy("deleted")
    parameter_name = "deleted"

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, str]]:
        return [("yes", _("deleted ones")), ("all", _("all"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        first, *others = super().choices(changelist)
        yield {**first, "display": _("not deleted")}
        yield from others

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        is_asked = {"all": Q(), "yes": Q(deleted_at__isnull=False)}
        default = Q() if "deleted" in request.GET.get("phase__exact", "") else Q(deleted_at=None)
        return rows.filter(is_asked.get(self.value() or "", default))


class CatalogueFilter(admin.RelatedFieldListFilter):
    """Images of the catalogue. Those by reference are many."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(str(image.pk), image.name) for image in Image.objects.filter(tenant=None)]


class OwnImageFilter(admin.SimpleListFilter):
    """Leaves images by reference out, unless they are asked for."""

    title = gettext_lazy("kind")
    parameter_name = "by_reference"

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, str]]:
        return [("yes", _("by reference")), ("all", _("all"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        first, *others = super().choices(changelist)
        yield {**first, "display": _("catalogue")}
        yield from others

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        is_asked = {"all": Q(), "yes": Q(tenant__isnull=False)}
        return rows.filter(is_asked.get(self.value() or "", Q(tenant=None)))


class WorkloadPage(ReadOnlyPage[Any]):
    """Common columns and filters of the pages of workspaces and of jobs."""

    list_filter = ("phase", DeletedFilter, "tenant", "pool", ("image", CatalogueFilter))
    list_select_related = ("owner", "tenant", "pool", "flavor")
    date_hierarchy = "created_at"

    @admin.display(description=gettext_lazy("page"))
    def page(self, workload: Workload) -> str:
        address = self.public_address(workload)
        return format_html('<a href="{}">{}</a>', address, _("Open")) if address else "–"

    @admin.display(description=gettext_lazy("size"), ordering="units")
    def size(self, workload: Workload) -> str:
        facts = {"pool": workload.pool, "gpus": as_gpus(workload.units, workload.pool.units_per_gpu)}
        return _("%(gpus)s GPU of %(pool)s") % facts if workload.units else str(workload.pool)


class CountsWorkloads(RecordedPage[Any]):
    """Page with a column for the number of undeleted workspaces and jobs of each row."""

    field: str  # of a workload

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        used = sum(map(self._count, kinds()), Value(0))
        rows: QuerySet[Any] = super().get_queryset(request).annotate(count_used=used)
        return rows

    def _count(self, kind: type[Workload]) -> Any:
        there = kind._default_manager.filter(**{self.field: OuterRef("pk")}, deleted_at__isnull=True)
        count = there.order_by().values(self.field).annotate(count=Count("pk")).values("count")
        return Coalesce(Subquery(count), 0)

    @admin.display(description=gettext_lazy("workspaces and jobs"), ordering="count_used")
    def used_by(self, row: Any) -> int:
        return int(row.count_used)

    def users(self, row: Any, **which: Any) -> int:
        """Return how many workspaces and jobs use it."""
        return sum(kind._default_manager.filter(**{self.field: row}, **which).count() for kind in kinds())


def use_text(count: int, instead: str) -> str:
    if not count:
        return ""
    used = ngettext("%(count)d workspace or job uses it.", "%(count)d workspaces and jobs use it.", count)
    return f"{used % {'count': count}} {instead}".strip()


@admin.register(Image)
class ImagePage(CountsWorkloads):
    field = "image"
    purpose = gettext_lazy(
        "Container images for workspaces and jobs: the user they run as, and what they offer."
    )
    list_display = ("name", "version", "reference", "cuda_version", "least_driver", "used_by", "is_active")
    list_editable = ("is_active",)
    list_filter = (OwnImageFilter, "is_active", "offers_jupyter", "offers_ssh")
    search_fields = ("name", "slug", "reference", "version", "cuda_version", "frameworks")
    prepopulated_fields = {"slug": ("name",)}
    fieldsets = (
        (None, {"fields": ("name", "slug", "description", "reference", "is_active")}),
        (
            gettext_lazy("Inside"),
            {
                "fields": ("version", "cuda_version", "frameworks", "least_driver"),
                "description": gettext_lazy(
                    "People see it where they choose an image, and can search for it."
                ),
            },
        ),
        (gettext_lazy("Offers"), {"fields": ("offers_jupyter", "offers_ssh", "has_code_server")}),
        (
            gettext_lazy("Runs as"),
            {
                "fields": ("uid", "gid", "username", "home", "shell"),
                "description": gettext_lazy("As the image was built; never root."),
            },
        ),
    )

    def public_address(self, obj: Image) -> str:
        return f"{reverse('launch')}?image={obj.slug}" if obj.is_active and not obj.is_own else ""

    def has_change_permission(self, request: HttpRequest, obj: Image | None = None) -> bool:
        """Refuse changes of an image by reference: the list of its tenant's registries decides on it."""
        return super().has_change_permission(request, obj) and not (obj and obj.is_own)

    def why_kept(self, obj: Image) -> str:
        if not self.users(obj):
            return ""
        live = self.users(obj, deleted_at=None)
        return use_text(live, _("Take it out of the catalogue instead: untick “offered”.")) or _(
            "Workspaces or jobs that are deleted by now used it, and stay on record. Untick “offered” instead."
        )


@admin.register(Flavor)
class FlavorPage(CountsWorkloads):
    """Admin page of sizes. It is in this app and not in quotas, because workloads use the sizes."""

    field = "flavor"
    purpose = gettext_lazy(
        "Ready-made sizes: GPUs, cores and memory of one pool. Existing workspaces and jobs keep their size."
    )
    form = FlavorForm
    list_display = ("name", "slug", "pool", "units", "cpu_millicores", "memory_mib", "used_by")
    list_filter = ("pool",)
    list_select_related = ("pool",)
    search_fields = ("slug", "name")
    prepopulated_fields = {"slug": ("name",)}
    autocomplete_fields = ("pool",)

    def public_address(self, obj: Flavor) -> str:
        return f"{reverse('launch')}?flavor={obj.slug}"

    def after_change(self, actor: Actor, obj: Any) -> None:
        passes.want_everywhere()

    def why_kept(self, obj: Flavor) -> str:
        return use_text(
            self.users(obj, deleted_at=None), _("Delete it once they are deleted or use another size.")
        )
