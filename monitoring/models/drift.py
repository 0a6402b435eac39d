"""Differences between a cluster and the rows, and the last look at each cluster."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from clusters.models import Cluster
from jobs.models import Job
from workspaces.models import Workspace


class What(models.TextChoices):
    UNWANTED = "unwanted", _("unwanted")
    MISSING = "missing", _("missing")
    CHANGED = "changed", _("changed")


class Look(models.Model):
    """Slow look at a whole cluster. A mark that no look answers expires."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="+")
    wanted_at = models.DateTimeField(null=True, help_text=_("Somebody asked for one."))
    queued_at = models.DateTimeField(null=True, help_text=_("One is on its way."))
    ended_at = models.DateTimeField(null=True)
    seconds = models.FloatField(default=0)
    objects_seen = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, help_text=_("Why the last one came to no end."))


# Findings that are shown: seen for a minute, there at the last look, not accepted.
FINDING_IS_OPEN = models.Q(confirmed_at__isnull=False, resolved_at__isnull=True, accepted_at__isnull=True)


class FindingQuerySet(models.QuerySet["Finding"]):
    def open(self) -> FindingQuerySet:
        return self.filter(FINDING_IS_OPEN)


class Finding(models.Model):
    """Difference between the cluster and a row. Written only when it changes: a clock alone is no change.

    An open finding was there at its cluster's last look.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="+", verbose_name=_("cluster")
    )
    what = models.CharField(_("what"), max_length=8, choices=What)
    kind = models.CharField(_("kind"), max_length=40)
    namespace = models.CharField(_("namespace"), max_length=253, blank=True)
    name = models.CharField(_("name"), max_length=253)
    uid = models.CharField(_("uid"), max_length=64, blank=True, help_text=_("Of the object; empty: missing."))
    # From the label or the wanted object; there may be no row with it.
    workspace_uuid = models.UUIDField(_("workspace"), null=True)
    workspace = models.ForeignKey(Workspace, null=True, on_delete=models.SET_NULL, related_name="+")
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="+")
    tenant_slug = models.CharField(_("tenant"), max_length=63, blank=True)
    # {"fields": [{"path", "by", "at", "value"}]} of the changed fields.
    data = models.JSONField(default=dict)
    digest = models.CharField(max_length=16, blank=True, help_text=_("Of what was changed."))
    first_seen_at = models.DateTimeField(_("first seen at"))
    confirmed_at = models.DateTimeField(null=True, help_text=_("It lasted; from here on it is shown."))
    accepted_at = models.DateTimeField(null=True, help_text=_("It may stay as it is."))
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    last_seen_at = models.DateTimeField(_("last seen at"), null=True, help_text=_("Set when it is over."))
    resolved_at = models.DateTimeField(_("resolved at"), null=True)

    objects = FindingQuerySet.as_manager()

    class Meta:
        verbose_name = _("drift finding")
        verbose_name_plural = _("drift findings")
        ordering: ClassVar = ["-first_seen_at", "id"]
        indexes: ClassVar = [models.Index(fields=["resolved_at", "confirmed_at"], name="finding_open")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "what", "kind", "namespace", "name", "uid"],
                condition=Q(resolved_at__isnull=True),
                name="one_open_finding_per_object",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"
