"""Jobs that wait for others: held without a claim in the queue until those are over as asked.

Nothing is remembered: each look at a held job reads the rows of those that it waits for. The end of a job asks for such
looks, and the keeper's clock looks at what is held all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict, Invalid, TooMany
from accounts.models import Tenant
from jobs import access, enqueue
from jobs.changing import Level, add_event, changing
from jobs.models import OVER, SETTLED, Dependency, Desired, Job, On, PartPhase, Phase
from quotas import admission
from storage import versions
from storage.models import LATEST, Mount, Snapshot
from storage.models import Phase as VersionPhase

from . import parts

MOST = 20  # jobs that one waits for
MOST_HELD = 500  # jobs of a person that wait for others
NAMED = 5
RECENT = timedelta(days=7)
WAITS = "waits_for_jobs"
NOT_STARTED, NO_VERSION = "not_started", "no_version_to_read"
GIVEN_UP = (NOT_STARTED, NO_VERSION)


@dataclass(frozen=True)
class After:
    """Wish of a new job: the other, and how it has to be over."""

    job: UUID
    on: str = On.SUCCESS


class Standing(Enum):
    WAITS = "waits"
    MET = "met"
    NEVER = "never"


def standing(on: str, phase: str, version: str | None) -> Standing:
    """Return how a job stands for one that waits for it. `version`: phase of the version that it published. Pure."""
    if phase not in OVER or version == VersionPhase.PENDING:
        return Standing.WAITS
    if on == On.END:
        return Standing.MET
    is_whole = phase == Phase.SUCCEEDED and version in (None, VersionPhase.READY)
    return Standing.MET if is_whole else Standing.NEVER


def standing_of(one: Dependency) -> Standing:
    first = one.predecessor
    return standing(one.on, first.phase, first.version.phase if first.version else None)


def dependencies_of(jobs: Iterable[UUID]) -> list[Dependency]:
    """Return what these jobs wait for, or waited for. One query."""
    rows = Dependency.objects.filter(job__in=list(jobs)).order_by("pk")
    return list(rows.select_related("predecessor__version"))


# --- a new job


def candidates(actor: Actor, tenants: Iterable[Tenant], named: Iterable[UUID]) -> list[Job]:
    """Return jobs for a form to offer: the newest that are not over or succeeded lately, and the named ones."""
    rows = access.visible(actor).filter(tenant__in=list(tenants), deleted_at=None)
    rows = rows.exclude(desired=Desired.DELETED).select_related("tenant").order_by("-created_at", "pk")
    lately = Q(phase=Phase.SUCCEEDED, ended_at__gt=timezone.now() - RECENT)
    newest = list(rows.filter(Q(ended_at=None) | lately)[:MOST])
    offered = {job.pk for job in newest}
    return newest + [job for job in rows.filter(pk__in=list(named)[:MOST]) if job.pk not in offered]


def check(actor: Actor, tenant: Tenant, wishes: Sequence[After]) -> list[tuple[Job, str]]:
    """Return the jobs that a new one is to wait for. Raise Invalid for those that are not there, or never help."""
    rows = access.visible(actor).filter(tenant=tenant, deleted_at=None).exclude(desired=Desired.DELETED)
    there = rows.select_related("version", "writes").in_bulk([wish.job for wish in wishes])
    faults = []
    if len(wishes) > MOST:
        faults.append(_("A job can wait for %(most)s others at most.") % {"most": MOST})
    if len({wish.job for wish in wishes}) < len(wishes):
        faults.append(_("Each job can be named once."))
    for wish in wishes:
        first = there.get(wish.job)
        if first is None:
            faults.append(_("There is no job %(id)s in this tenant.") % {"id": wish.job})
        elif standing_of(Dependency(predecessor=first, on=wish.on)) == Standing.NEVER:
            faults.append(_("“%(name)s” did not succeed, so it would never start.") % {"name": first.name})
    if faults:
        text = _("It cannot wait for these jobs.")
        raise Invalid("invalid", text, _("See the list of jobs."), fields={"after": faults})
    return [(there[wish.job], wish.on) for wish in wishes]


def hold(job: Job, first: Sequence[tuple[Job, str]]) -> None:
    """Let the new job wait for these. Raise TooMany if too many of its owner's jobs wait so."""
    if Job.objects.filter(owner=job.owner_id, is_held=True, ended_at=None).count() > MOST_HELD:
        raise TooMany(
            "too_many_held",
            _("You already have %(count)d jobs that wait for others.") % {"count": MOST_HELD},
            _("Wait until some have started, or cancel some."),
            retry_after_seconds=60,
        )
    Dependency.objects.bulk_create(Dependency(job=job, predecessor=one, on=on) for one, on in first)
    enqueue.look([job.pk])


# --- a held job


def follow(job: Job) -> None:
    """Let a held job begin if those that it waits for are over as asked; end it if they never will be."""
    if still_waits(job):
        return
    with transaction.atomic():
        admission.lock(job.pool.cluster_id)
        with changing(job.pk) as row:
            if not row.is_held or row.desired != Desired.DONE:
                return
            found = [(one, standing_of(one)) for one in dependencies_of([row.pk])]
            never = [one.predecessor for one, stands in found if stands == Standing.NEVER]
            if never:
                give_up(row, never[0], NOT_STARTED)
            elif waits := [one.predecessor for one, stands in found if stands == Standing.WAITS]:
                show(row, waits)
            elif not mounts_what_was_published(row, [one.predecessor for one, _stands in found]):
                give_up(row, found[0][0].predecessor, NO_VERSION)
            else:
                row.is_held = False
                add_event(row, "released", names=names_of(one.predecessor for one, _stands in found))
                parts.request_next(row)


def still_waits(job: Job) -> bool:
    """Return True if it waits on, and says so already: there is nothing to write, and no lock is needed."""
    found = [(one.predecessor, standing_of(one)) for one in dependencies_of([job.pk])]
    if any(stands == Standing.NEVER for _one, stands in found):
        return False
    waits = [one for one, stands in found if stands == Standing.WAITS]
    return bool(waits) and (job.message_code, job.message_data) == (WAITS, waiting_for(waits))


def show(job: Job, waits: Sequence[Job]) -> None:
    job.message_code, job.message_data = WAITS, waiting_for(waits)


def waiting_for(waits: Sequence[Job]) -> dict[str, Any]:
    return {"names": names_of(waits), "by": [str(one.pk) for one in waits]}


def names_of(jobs: Iterable[Job]) -> str:
    names = [f"“{one.name}”" for one in jobs]
    return ", ".join(names[:NAMED]) + (" …" if len(names) > NAMED else "")


def give_up(job: Job, first: Job, code: str) -> None:
    """Cancel a held job. It begins to wait again if the other is retried."""
    data: dict[str, Any] = {"name": first.name, "predecessor": str(first.pk)}
    parts.fail(job, code, data)
    add_event(job, code, level=Level.WARNING, **data)
    job.desired = Desired.CANCELLED
    job.parts.exclude(phase__in=SETTLED).update(phase=PartPhase.CANCELLED)
    parts.show(job)


def mounts_what_was_published(job: Job, first: Iterable[Job]) -> bool:
    """Let the job mount the versions that the others published, where it asked for the latest.

    Return False if a dataset that it reads has no version.
    """
    newest: dict[UUID, Snapshot] = {}
    for one in first:
        version = one.version
        if version is not None and version.phase == VersionPhase.READY:
            best = newest.setdefault(version.volume_id, version)
            if (version.number or 0) > (best.number or 0):
                newest[version.volume_id] = version
    for _dataset, version in sorted(newest.items()):
        versions.pin(job.pk, version)
    versions.renew(job.pk)
    return not Mount.objects.filter(holder=job.pk, version=LATEST, volume__is_version=False).exists()


# --- retry


def refuse_hopeless(job: Job) -> None:
    """Refuse to retry a job that never began, as long as one that it waits for is over and did not succeed."""
    for one in dependencies_of([job.pk]) if job.is_held else ():
        if standing_of(one) == Standing.NEVER:
            raise Conflict(
                "predecessor_failed",
                _("It waits for “%(name)s”, which did not succeed.") % {"name": one.predecessor.name},
                _("Retry that one: this job then starts by itself."),
            )


def clusters_of_held(tenant: Tenant) -> set[UUID]:
    """Return the clusters of jobs that never began: those among which `revive` finds some."""
    held = Job.objects.filter(tenant=tenant, is_held=True).exclude(desired=Desired.DELETED)
    return set(held.values_list("pool__cluster", flat=True))


def not_started_because_of(job: Job) -> set[UUID]:
    """Return the jobs that were not started because this one did not succeed, and those after them."""
    found: set[UUID] = set()
    ends = [job.pk]
    while ends:
        rows = Job.objects.filter(
            after__predecessor__in=ends,
            is_held=True,
            desired=Desired.CANCELLED,
            failure__code__in=GIVEN_UP,
            failure__data__predecessor__in=[str(pk) for pk in ends],
        )
        ends = list(set(rows.values_list("pk", flat=True)) - found)
        found.update(ends)
    return found


def revive(because_of: Job) -> None:
    """Let jobs wait again that were not started because of this one, which runs again. Under their clusters' locks."""
    for pk in sorted(not_started_because_of(because_of)):
        with changing(pk) as row:
            if row.desired != Desired.CANCELLED or not row.is_held or row.failure is None:
                continue
            row.desired, row.phase = Desired.DONE, Phase.WAITING
            row.failure = row.ended_at = row.expires_at = None
            row.parts.filter(phase=PartPhase.CANCELLED).update(phase=PartPhase.PENDING, ending="")
            add_event(row, "waits_again", name=because_of.name, predecessor=str(because_of.pk))
            show(row, [because_of])
        enqueue.look([pk])
