"""Admin page for finding anybody's volumes. It changes nothing: only use cases do."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse
from django.utils.translation import gettext_lazy

from accounts.admin.recorded import ReadOnlyPage

from .models import Connection, Snapshot, StorageSpan, Volume


@admin.register(Volume)
class VolumePage(ReadOnlyPage[Volume]):
    purpose = gettext_lazy("Volumes of all people. Grow, hand on, delete and restore each on its own page.")
    list_display = (
        "name", "owner", "tenant", "kind", "requested_mib", "phase", "problem", "bin_until", "created_at",
    )  # fmt: skip
    list_filter = ("phase", "kind", "shared", "tenant", "cluster", "storage_class")
    list_select_related = ("owner", "tenant")
    search_fields = ("name", "owner__username", "bound_to", "=id")
    date_hierarchy = "created_at"
    fields = (
        "name", "owner", "tenant", "cluster", "kind", "shared", "requested_mib", "size_mib", "used_mib", "used_at",
        "phase", "problem", "problem_data", "storage_class", "access", "is_enforced", "can_grow", "bound_to",
        "affinity", "driver", "source", "bin_until", "created_at", "deleted_at",
    )  # fmt: skip

    def public_address(self, obj: Volume) -> str:
        return reverse("volume", args=[obj.pk]) if obj.deleted_at is None else ""


@admin.register(Snapshot)
class SnapshotPage(ReadOnlyPage[Snapshot]):
    purpose = gettext_lazy("Snapshots and published versions. Each is deleted on the page of its volume.")
    list_display = ("volume", "number", "note", "by", "phase", "problem", "size_mib", "created_at")
    list_filter = ("phase", "volume__tenant", "volume__cluster")
    list_select_related = ("volume", "by")
    search_fields = ("volume__name", "note", "by__username", "content", "handle", "=id")
    date_hierarchy = "created_at"
    fields = (
        "volume", "number", "note", "by", "phase", "problem", "problem_data", "size_mib", "content", "handle",
        "created_at", "deleted_at",
    )  # fmt: skip

    def public_address(self, obj: Snapshot) -> str:
        return reverse("volume", args=[obj.volume_id]) if obj.deleted_at is None else ""


@admin.register(Connection)
class ConnectionPage(ReadOnlyPage[Connection]):
    purpose = gettext_lazy(
        "Buckets that people named. Their keys are shown to nobody; each is changed by its owner."
    )
    list_display = ("name", "owner", "tenant", "endpoint", "bucket", "created_at")
    list_filter = ("tenant",)
    list_select_related = ("owner", "tenant")
    search_fields = ("name", "owner__username", "endpoint", "bucket")
    fields = ("name", "owner", "tenant", "endpoint", "bucket", "created_at")


@admin.register(StorageSpan)
class StorageSpanPage(ReadOnlyPage[StorageSpan]):
    purpose = gettext_lazy(
        "How long each volume had which size, owner and tenant: GiB-months are counted from it. A volume without an "
        "end still counts."
    )
    list_display = ("volume", "tenant", "user", "mib", "since", "until")
    list_filter = ("tenant",)
    list_select_related = ("tenant", "user")
    date_hierarchy = "since"
    search_fields = ("=volume", "tenant__slug", "user__username")
