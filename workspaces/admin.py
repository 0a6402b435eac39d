"""Admin page for finding and stopping anybody's workspace."""

from __future__ import annotations

from math import ceil

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage
from quotas.scheduling import as_gpus
from workloads.admin import WorkloadPage

from .models import Desired, Phase, Schedule, Workspace
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


@admin.register(Workspace)
class WorkspacePage(WorkloadPage):
    """Read-only page for finding and stopping workspaces: only use cases change the rows."""

    purpose = gettext_lazy("Workspaces of all people. The activity of each is on its own page.")
    list_display = ("name", "owner", "tenant", "size", "phase", "node", "created_at", "page")
    search_fields = ("name", "owner__username", "node", "=id")
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


@admin.register(Schedule)
class SchedulePage(ReadOnlyPage[Schedule]):
    """Read-only page of weekly schedules: their owners set them."""

    purpose = gettext_lazy("Weekly times at which workspaces are started and stopped. Their owners set them.")
    list_display = ("workspace", "owner", "start", "stop", "days", "time_zone", "is_on", "due_at")
    list_filter = ("is_on",)
    search_fields = ("workspace__name", "workspace__owner__username")
    list_select_related = ("workspace__owner",)
    fields = ("workspace", "start", "stop", "days", "time_zone", "is_on", "due_at", "changed_at")

    @admin.display(description=gettext_lazy("owner"), ordering="workspace__owner__username")
    def owner(self, obj: Schedule) -> str:
        return obj.workspace.owner.get_username()
