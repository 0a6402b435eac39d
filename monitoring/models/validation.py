"""Tests of GPUs: a small CUDA program on one node, its output, and who requested it."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from clusters.models import Cluster
from quotas.models import Pool


class Validation(models.Model):
    """Test of one node, on one of its free GPUs. `code` and `data` make its text."""

    class Outcome(models.TextChoices):
        UNDER_WAY = "", _("under way")
        PASSED = "passed", _("passed")
        FAILED = "failed", _("failed")
        NOT_RUN = "not-run", _("could not run")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="validations", verbose_name=_("cluster")
    )
    pool = models.ForeignKey(
        Pool, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("pool")
    )
    node = models.CharField(_("node"), max_length=253)
    image = models.CharField(_("image"), max_length=512)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        verbose_name=_("asked by"),
    )
    asked_at = models.DateTimeField(_("asked at"), auto_now_add=True)
    # Time at which a worker was asked to look; cleared by the look.
    queued_at = models.DateTimeField(null=True)
    job_uid = models.CharField(max_length=64, blank=True, help_text=_("Of its Job, once that was made."))
    started_at = models.DateTimeField(_("started at"), null=True)
    ended_at = models.DateTimeField(_("ended at"), null=True)
    outcome = models.CharField(_("result"), max_length=8, choices=Outcome, blank=True)
    # Reason why it waits, or why it ended so.
    code = models.CharField(max_length=64, blank=True)
    data = models.JSONField(default=dict)
    log = models.TextField(_("log"), blank=True)
    # Time at which an admin allowed the node although its test failed.
    overruled_at = models.DateTimeField(_("overruled at"), null=True)
    overruled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        verbose_name = _("test of GPUs")
        verbose_name_plural = _("tests of GPUs")
        ordering: ClassVar = ["-asked_at", "id"]
        indexes: ClassVar = [
            models.Index(fields=["cluster", "node", "-asked_at"], name="validations_of_a_node")
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "node"],
                condition=Q(ended_at__isnull=True),
                name="one_validation_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, outcome="") | Q(ended_at__isnull=False) & ~Q(outcome=""),
                name="ended_with_an_outcome",
            ),
        ]

    def __str__(self) -> str:
        return self.node
