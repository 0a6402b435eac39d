"""Notices for the owner of a job: that it is over, or will have to give its GPUs back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import Actor
from accounts.models import User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.notifying import notify
from accounts.notices.words import Words

from . import access, story
from .models import Attempt, Event

SUBJECT = "job"
TITLES = {
    "succeeded": gettext_lazy("“%(name)s” has succeeded"),
    "failed": gettext_lazy("“%(name)s” has failed"),
    "stopped_by_budget_spent": gettext_lazy("“%(name)s” was cancelled: its GPU-hours are used up"),
    "cancel_requested": gettext_lazy("“%(name)s” was cancelled by %(by)s"),
    "not_started": gettext_lazy("“%(name)s” was not started"),
    "no_version_to_read": gettext_lazy("“%(name)s” was not started"),
    "end_unproven": gettext_lazy("“%(name)s”: nobody knows if a part has ended"),
}


UNWELL = gettext_lazy("“%(name)s”: a problem with its GPU, node or storage")


def on_event(event: Event) -> None:
    """Notify the owner of a new event in the same transaction, if the event has a notice."""
    job = event.job
    if event.code not in TITLES or not job.notify or event.data.get("by") == job.owner.get_username():
        return
    about = {"code": event.code, "data": event.data}
    if event.code == "failed" and job.failure is not None:
        about["cause"] = job.failure
    key = f"{SUBJECT} {job.pk} {event.number}"
    notify(Kind.JOB, [job.owner], subject=SUBJECT, subject_id=job.pk, key=key, data=about)


def notify_condition(event: Event) -> None:
    """Notify the owner of a problem of node, GPU or storage."""
    if event.job.notify:
        key = f"{SUBJECT} {event.job.pk} {event.number}"
        data = {"code": event.code, "data": event.data}
        notify(Kind.HEALTH, [event.job.owner], subject=SUBJECT, subject_id=event.job.pk, key=key, data=data)


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    """Words by notice, for jobs that the person may still see."""
    ids = {notice.subject_id for notice in notices}
    jobs = {job.pk: job for job in access.visible(Actor(user)).filter(owner=user, pk__in=ids)}
    ill = problems_of(jobs) if any(notice.kind == Kind.HEALTH for notice in notices) else {}
    found = {}
    for notice in notices:
        title = UNWELL if notice.kind == Kind.HEALTH else TITLES.get(notice.data["code"])
        if (job := jobs.get(notice.subject_id)) is None or title is None:
            continue
        cause = notice.data.get("cause") or notice.data
        found[notice.pk] = Words(
            title=str(title) % {**notice.data["data"], "name": job.name},
            text=story.sentence(cause["code"], cause["data"]),
            hint=story.hint(cause["code"], cause["data"]),
            path=reverse("job", args=[job.pk]),
            action=_("Open its page"),
            is_past=notice.kind == Kind.HEALTH and notice.data["code"] not in ill.get(job.pk, ()),
        )
    return found


def problems_of(jobs: Iterable[UUID]) -> dict[UUID, set[str]]:
    """Return the codes of the present problems of each job's attempts."""
    found: dict[UUID, set[str]] = {}
    present = Attempt.objects.filter(part__job__in=jobs, ended_at=None).exclude(conditions=[])
    for job, conditions in present.values_list("part__job", "conditions"):
        found.setdefault(job, set()).update(one["code"] for one in conditions)
    return found
