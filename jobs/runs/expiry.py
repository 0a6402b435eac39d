"""Delete jobs whose time to live has passed."""

from __future__ import annotations

from django.utils import timezone

from clusters.watch.ticks import is_due
from jobs import enqueue
from jobs.changing import add_event, changing
from jobs.models import Desired, Job

EVERY_SECONDS = 60
AT_ONCE = 100


def on_tick(**_: object) -> None:
    if is_due(EVERY_SECONDS):
        delete_expired()


def delete_expired() -> None:
    due = Job.objects.filter(expires_at__lte=timezone.now(), deleted_at=None).exclude(desired=Desired.DELETED)
    for pk in due.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]:
        with changing(pk) as job:
            if job.expires_at is not None and job.expires_at <= timezone.now():
                job.desired = Desired.DELETED
                add_event(job, "expired")
        enqueue.look([pk])
