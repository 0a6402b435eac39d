"""Where admins keep the catalogue of images, and find anybody's workspace. What happens to one is done on its page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from accounts import audit
from accounts.rest.actors import actor_of

from .models import Image, Workspace


@admin.register(Image)
class ImageAdmin(admin.ModelAdmin[Image]):
    list_display = ("name", "slug", "reference", "offers_jupyter", "offers_ssh", "is_active", "in_use")
    list_filter = ("is_active",)
    search_fields = ("name", "slug", "reference")
    prepopulated_fields = {"slug": ("name",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Image]:
        there = Workspace.objects.filter(image=OuterRef("pk"), deleted_at__isnull=True)
        count = there.order_by().values("image").annotate(count=Count("pk")).values("count")
        return super().get_queryset(request).annotate(in_use=Coalesce(Subquery(count), 0))

    @admin.display(description=_("workspaces"))
    def in_use(self, image: Any) -> int:
        return int(image.in_use)

    def save_model(self, request: HttpRequest, obj: Image, form: ModelForm[Image], change: bool) -> None:
        super().save_model(request, obj, form, change)
        verb = "image.change" if change else "image.add"
        audit.record(
            actor_of(request), verb, target=obj, data={"name": obj.slug, "fields": form.changed_data}
        )

    def delete_model(self, request: HttpRequest, obj: Image) -> None:
        audit.record(actor_of(request), "image.delete", target=obj, data={"name": obj.slug})
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        for image in queryset:
            self.delete_model(request, image)


@admin.register(Workspace)
class WorkspaceAdmin(admin.ModelAdmin[Workspace]):
    """To look and to find: rows are changed by use cases alone."""

    list_display = ("name", "owner", "tenant", "pool", "flavor", "phase", "node", "created_at", "page")
    list_filter = ("phase", "tenant", "pool")
    list_select_related = ("owner", "tenant", "pool", "flavor")
    search_fields = ("name", "owner__username", "node", "id")
    fields = (
        "name", "owner", "tenant", "image", "pool", "flavor", "units", "cpu_millicores", "memory_mib", "disk_mib",
        "desired", "phase", "step", "step_since", "node", "created_at", "started_at", "ready_at", "deleted_at",
        "run", "pod_uid", "dirty_since", "page",
    )  # fmt: skip

    @admin.display(description=_("page"))
    def page(self, workspace: Workspace) -> str:
        return format_html('<a href="{}">{}</a>', reverse("workspace", args=[workspace.pk]), _("Open"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Workspace | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Workspace | None = None) -> bool:
        return False
