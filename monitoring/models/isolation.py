"""Proofs of isolation: what a pod of one tenant reached, with and without the tenants' NetworkPolicy."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from clusters.models import Cluster


class IsolationProof(models.Model):
    """Trial of a cluster's isolation. `code` and `data` make its text."""

    class Outcome(models.TextChoices):
        UNDER_WAY = "", _("under way")
        APART = "apart", _("kept apart")
        REACHED = "reached", _("not kept apart")
        UNCLEAR = "unclear", _("nothing proven")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="isolation_proofs")
    image = models.CharField(max_length=512)
    uid = models.PositiveIntegerField(default=1000, help_text=_("The user that the image runs as."))
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    asked_at = models.DateTimeField(auto_now_add=True)
    # Time at which a worker was asked to look; cleared by the look.
    queued_at = models.DateTimeField(null=True)
    # What was reached without the policy, and the time and number of the last attempt before it.
    before = models.JSONField(default=dict)
    policed_at = models.DateTimeField(null=True)
    tried_before = models.PositiveIntegerField(default=0)
    after = models.JSONField(default=dict)
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=8, choices=Outcome, blank=True)
    code = models.CharField(max_length=64, blank=True)
    data = models.JSONField(default=dict)
    # Time at which its pods were removed; until then every look tries again.
    cleared_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-asked_at", "id"]
        indexes: ClassVar = [models.Index(fields=["cluster", "-asked_at"], name="proofs_of_a_cluster")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster"], condition=Q(cleared_at__isnull=True), name="one_isolation_proof_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, outcome="") | Q(ended_at__isnull=False) & ~Q(outcome=""),
                name="proof_ended_with_an_outcome",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.asked_at}"
