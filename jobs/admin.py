"""Admin pages for finding, cancelling and deleting anybody's jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from quotas.scheduling import as_gpus
from workloads.admin import WorkloadPage

from .api.representation import counts_of
from .models import HOLD_UNITS, Desired, Job, PartPhase
from .runs import lifecycle

WAIT = (PartPhase.PENDING, PartPhase.WAITING)


class EndJobs(Previewed[Job]):
    """Admin action that ends jobs. The preview shows what runs and waits of each, in one query for all."""

    is_grave = True

    def effects(self, actor: Actor, rows: Sequence[Job]) -> list[Effect]:
        counts = counts_of([row.pk for row in rows])
        return [self._effect(row, counts[row.pk]) for row in rows]

    def _effect(self, row: Job, counts: Counter[str]) -> Effect:
        facts = {"name": row.name, "user": row.owner.username, "tenant": row.tenant}
        whom = _("%(name)s of %(user)s in %(tenant)s") % facts
        if why := self.why_not(row):
            return Effect(str(row.pk), whom, refused=why)
        return Effect(str(row.pk), whom, (*self._ends(row, counts), *self.also()))

    def _ends(self, row: Job, counts: Counter[str]) -> list[str]:
        sentences = []
        if running := sum(counts[phase] for phase in HOLD_UNITS):
            sentences.append(
                ngettext("%(count)d part of it ends.", "%(count)d parts of it end.", running)
                % {"count": running}
            )
            if row.units:
                gpus = as_gpus(row.units * running, row.pool.units_per_gpu)
                sentences.append(
                    _("GPUs of %(pool)s that become free: %(gpus)s.") % {"pool": row.pool, "gpus": gpus}
                )
        if waiting := sum(counts[phase] for phase in WAIT):
            sentences.append(
                ngettext("%(count)d part does not start.", "%(count)d parts do not start.", waiting)
                % {"count": waiting}
            )
        return sentences

    def why_not(self, row: Job) -> str:
        raise NotImplementedError

    def also(self) -> tuple[str, ...]:
        return ()


class CancelJobs(EndJobs):
    name = "cancel"
    short_description = gettext_lazy("Cancel …")
    title = gettext_lazy("Cancel jobs")
    button = gettext_lazy("Cancel jobs")

    def notes(self) -> list[str]:
        return [
            _("Files that they wrote stay. Their owners see who cancelled them, and can let them run again."),
        ]

    def why_not(self, row: Job) -> str:
        if row.desired != Desired.DONE or row.ended_at is not None:
            return _("It is over, or about to be.")
        return ""

    def apply(self, actor: Actor, row: Job) -> bool:
        return lifecycle.cancel(actor, row)

    def done(self, count: int) -> str:
        return ngettext("%(count)d job is cancelled.", "%(count)d jobs are cancelled.", count) % {
            "count": count
        }


class DeleteJobs(EndJobs):
    name = "remove"
    short_description = gettext_lazy("Delete …")
    title = gettext_lazy("Delete jobs")
    button = gettext_lazy("Delete jobs")

    def notes(self) -> list[str]:
        return [_("Files that they wrote stay. A deleted job cannot run again.")]

    def why_not(self, row: Job) -> str:
        return _("It is deleted already.") if row.desired == Desired.DELETED else ""

    def also(self) -> tuple[str, ...]:
        return (_("It leaves the list of jobs. This cannot be undone."),)

    def apply(self, actor: Actor, row: Job) -> bool:
        return lifecycle.delete(actor, row)

    def done(self, count: int) -> str:
        return ngettext("%(count)d job is deleted.", "%(count)d jobs are deleted.", count) % {"count": count}


@admin.register(Job)
class JobPage(WorkloadPage):
    """Read-only page for finding and ending jobs: only use cases change the rows."""

    purpose = gettext_lazy("Jobs of all people. The parts and the activity of each are on its own page.")
    list_display = ("name", "owner", "tenant", "size", "phase", "parts_done", "created_at", "page")
    search_fields = ("name", "owner__username", "=id", "=parts__run")
    actions = (CancelJobs(), DeleteJobs())
    fields = (
        "name", "owner", "tenant", "image", "pool", "flavor", "units", "cpu_millicores", "memory_mib", "completions",
        "parallelism", "retries", "priority", "desired", "phase", "parts_by_phase", "created_at", "started_at",
        "ended_at", "expires_at", "deleted_at", "dirty_since",
    )  # fmt: skip

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found = super().get_changelist_instance(request)
        counts = counts_of([job.pk for job in found.result_list])
        for job in found.result_list:
            job.counts = counts[job.pk]
        return found

    def public_address(self, obj: Job) -> str:
        return "" if obj.deleted_at else reverse("job", args=[obj.pk])

    def buttons(self, request: HttpRequest, obj: Job) -> list[tuple[str, str]]:
        return [action.as_button for action in (CancelJobs(), DeleteJobs()) if not action.why_not(obj)]

    @admin.display(description=gettext_lazy("done"))
    def parts_done(self, job: Any) -> str:
        facts = {"done": job.counts[PartPhase.SUCCEEDED], "parts": job.completions}
        return _("%(done)s of %(parts)s parts") % facts

    @admin.display(description=gettext_lazy("parts"))
    def parts_by_phase(self, job: Job) -> str:
        counts = counts_of([job.pk])[job.pk]
        return ", ".join(f"{phase.label}: {counts[phase]}" for phase in PartPhase if counts[phase])
