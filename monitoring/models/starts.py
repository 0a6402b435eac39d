"""Pods of ours that a node lately could not start, as the cluster's events told: forgotten within the hour."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from clusters.models import Cluster


class FailedStart(models.Model):
    """One pod and what is in its way there, as often as it was told."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    node = models.CharField(max_length=253)
    namespace = models.CharField(max_length=253)
    pod = models.CharField(max_length=253)
    code = models.CharField(max_length=64)
    text = models.TextField(blank=True)
    # Of its storage, and not of what every pod needs there.
    is_volume = models.BooleanField(default=False)
    count = models.PositiveIntegerField(default=1)
    last_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["node", "namespace", "pod"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "node", "namespace", "pod", "code"], name="one_row_per_failed_start"
            )
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}"
