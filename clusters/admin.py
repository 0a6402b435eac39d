"""Admin pages for clusters, and for the messages that no rule explains yet."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from accounts import audit
from accounts.access import Actor
from accounts.models import User
from clusters.doctor import Level, examine
from clusters.models import Cluster, UnknownCause

LEVELS = {Level.OK: messages.SUCCESS, Level.WARN: messages.WARNING, Level.FAIL: messages.ERROR}


def actor_of(request: HttpRequest) -> Actor:
    assert isinstance(request.user, User)
    return Actor(request.user)


@admin.register(Cluster)
class ClusterAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "slug", "connection", "version", "nodes_seen", "reachable")
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}
    readonly_fields = ("version", "unreachable_since", "unreachable_reason")
    actions = ("test_connection",)
    fieldsets = (
        (None, {"fields": ("name", "slug")}),
        (_("Connection"), {"fields": ("connection", "kubeconfig_path", "context")}),
        (_("Access to workspaces"), {"fields": ("exposure", "ssh_service_port")}),
        (_("Storage"), {"fields": ("home_class", "home_mib", "disk_class")}),
        (_("Images"), {"fields": ("image_pull_secrets",)}),
        (_("Isolation of tenants"), {"fields": ("pod_cidrs", "service_cidrs", "api_cidrs", "denied_cidrs")}),
        (_("As last seen"), {"fields": ("version", "unreachable_since", "unreachable_reason")}),
    )

    @admin.display(boolean=True, description=_("reachable"))
    def reachable(self, cluster: Cluster) -> bool:
        return cluster.unreachable_since is None

    @admin.display(description=_("nodes"))
    def nodes_seen(self, cluster: Cluster) -> int:
        return cluster.nodes.count()

    @admin.action(description=_("Test the connection, rights, storage, nodes and addresses"))
    def test_connection(self, request: HttpRequest, clusters: QuerySet[Cluster]) -> None:
        for cluster in clusters:
            for finding in examine(cluster):
                text = f"{cluster.slug}: {finding.message} {finding.hint}"
                self.message_user(request, text.strip(), LEVELS[finding.level])

    def save_model(self, request: HttpRequest, obj: Cluster, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        verb = "change" if change else "add"
        audit.record(actor_of(request), f"cluster.{verb}", target=obj, data={"fields": form.changed_data})

    def delete_model(self, request: HttpRequest, obj: Cluster) -> None:
        audit.record(actor_of(request), "cluster.delete", target=obj, data={"name": obj.name})
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Cluster]) -> None:
        for cluster in queryset:
            self.delete_model(request, cluster)


@admin.register(UnknownCause)
class UnknownCauseAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """To be given a rule, then deleted."""

    list_display = ("text", "source", "count", "first_at", "last_at")
    list_filter = ("source",)
    search_fields = ("text",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: UnknownCause | None = None) -> bool:
        return False
