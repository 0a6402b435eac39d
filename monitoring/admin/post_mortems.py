"""Admin page for post-mortems: runs that failed, were evicted or interrupted, of all tenants."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.urls import reverse
from django.utils.translation import gettext_lazy

from accounts.admin.recorded import ReadOnlyPage
from monitoring.models import PostMortem
from monitoring.post_mortems.representation import explained
from workloads import images


@admin.register(PostMortem)
class PostMortemPage(ReadOnlyPage[PostMortem]):
    purpose = gettext_lazy(
        "Runs that failed, were evicted or interrupted. A record stays when the cluster has forgotten the run, for as "
        "many days as BERTH_POST_MORTEM_DAYS says. Its own page has everything that is known, and takes notes."
    )
    list_display = (
        "name",
        "holder_kind",
        "sentence",
        "happened",
        "node",
        "ended_at",
        "owner",
        "tenant",
        "cluster",
    )
    list_filter = ("happened", "holder_kind", "cluster", "tenant")
    list_select_related = ("tenant", "owner", "cluster")
    search_fields = ("name", "node", "owner__username", "verdict", "gpus")
    date_hierarchy = "ended_at"
    fields = (
        "sentence", "what_to_do", "happened", "name", "holder_kind", "owner", "tenant", "cluster", "node", "gpus",
        "pool", "used_image", "started_at", "ended_at",
    )  # fmt: skip
    readonly_fields: ClassVar = fields

    def public_address(self, obj: PostMortem) -> str:
        return reverse("post-mortem", args=[obj.pk])

    def idle_fields(self, obj: PostMortem) -> dict[str, object]:
        names = ("node", "gpus", "pool", "started_at", "cluster")
        return {**{name: not getattr(obj, name) for name in names}, "used_image": not obj.image}

    @admin.display(description=gettext_lazy("image"))
    def used_image(self, record: PostMortem) -> str:
        return images.shown(record.image)

    @admin.display(description=gettext_lazy("verdict"))
    def sentence(self, record: PostMortem) -> str:
        return str(explained(record)["message"])

    @admin.display(description=gettext_lazy("what to change"))
    def what_to_do(self, record: PostMortem) -> str:
        return str(explained(record)["hint"])
