"""Post-mortems: what is kept of runs that failed, were evicted or interrupted, when the cluster has forgotten them.

A record has its run's id, so that rooms below can link it without asking. Its facts are copies: whatever is deleted
later changes nothing in it.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q, Value
from django.utils.translation import gettext_lazy as _

from accounts.models import Tenant
from clusters.models import Cluster
from quotas.models import Claim

LONGEST_NOTE = 4000
MOST_NOTES = 100


class PostMortem(models.Model):
    """Record of one run. Opened in the transaction of its end, filled in by a task soon after."""

    class Happened(models.TextChoices):
        FAILED = "failed", _("failed")
        EVICTED = "evicted", _("evicted")
        INTERRUPTED = "interrupted", _("interrupted")
        RESTARTED = "restarted", _("container restarted")
        REJECTED = "rejected", _("rejected by its node")
        LOST = "lost", _("end not confirmed")

    # The run's id, and so its claim's.
    id = models.UUIDField(primary_key=True, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", verbose_name=_("tenant"))
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", verbose_name=_("owner")
    )
    cluster = models.ForeignKey(
        Cluster, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("cluster")
    )
    holder_kind = models.CharField(_("kind"), max_length=12, choices=Claim.Holder)
    holder_id = models.UUIDField()
    name = models.CharField(_("name"), max_length=63)
    # Of a job: its part, and the attempt.
    part = models.PositiveIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0)
    image = models.CharField(_("image"), max_length=40, blank=True)
    pool = models.CharField(_("pool"), max_length=63, blank=True)
    node = models.CharField(_("node"), max_length=253, blank=True)

    happened = models.CharField(_("what happened"), max_length=12, choices=Happened)
    # The event by which it was opened.
    code = models.CharField(max_length=64)
    data = models.JSONField(default=dict)
    # What explains it best, by all that is known.
    verdict = models.CharField(_("verdict"), max_length=64, blank=True)
    verdict_data = models.JSONField(default=dict)
    started_at = models.DateTimeField(_("started at"), null=True)
    ended_at = models.DateTimeField(_("ended at"))

    # Copies of what was known (post_mortems/gathering.py), and the last lines of its log: [{"at", "text"}].
    facts = models.JSONField(default=dict)
    lines = models.JSONField(default=list)
    gpus = models.JSONField(_("GPUs"), default=list)
    # When it is looked at again; null: it is complete.
    due_at = models.DateTimeField(null=True)
    # When its filling was enqueued; null: it began since.
    queued_at = models.DateTimeField(null=True)
    gathered_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("post-mortem")
        verbose_name_plural = _("post-mortems")
        ordering: ClassVar = ["-ended_at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["-ended_at", "-id"], name="post_mortem_newest"),
            models.Index(fields=["tenant", "-ended_at"], name="post_mortem_tenant"),
            models.Index(fields=["holder_id", "-ended_at"], name="post_mortem_holder"),
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="post_mortem_due"),
        ]

    def __str__(self) -> str:
        return self.name


class PostMortemNote(models.Model):
    """Note that somebody wrote about a run that failed."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    post_mortem = models.ForeignKey(PostMortem, on_delete=models.CASCADE, related_name="notes")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    author_name = models.CharField(max_length=150)
    at = models.DateTimeField(auto_now_add=True)
    text = models.TextField(max_length=LONGEST_NOTE)

    class Meta:
        ordering: ClassVar = ["at", "id"]

    def __str__(self) -> str:
        return self.text[:60]


class SeenPod(models.Model):
    """What the watch told of a run's pod: how its containers ended, and its events. Kept for some days.

    A row without a run is a pod's of which only events came so far; one without a name a namespace that is deleted.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    uid = models.CharField(max_length=64)
    run = models.UUIDField(null=True)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253, blank=True)
    node = models.CharField(max_length=253, blank=True)
    # {"phase", "reason", "message", "ends": [...]}, as post_mortems/pods.py writes it.
    status = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    events = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    seen_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="one_row_per_seen_pod"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["run"], name="seen_pod_run"),
            models.Index(fields=["seen_at"], name="seen_pod_age"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class OomKill(models.Model):
    """Processes of a pod that the kernel ended because its memory limit was reached, as the node's agent counts them.

    `container` is its id at the node's runtime; empty: the whole pod.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    node = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=64)
    container = models.CharField(max_length=64, blank=True)
    kills = models.PositiveIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "pod_uid", "container"], name="one_count_of_oom_kills")
        ]
        indexes: ClassVar = [models.Index(fields=["last_at"], name="oom_kills_by_age")]

    def __str__(self) -> str:
        return f"{self.pod_uid}: {self.kills}"
