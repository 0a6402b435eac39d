"""Pods that a node recently failed to start, from the cluster's events; deleted after an hour."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from clusters.models import Cluster


class FailedStart(models.Model):
    """A pod and the problem that keeps it from starting, with the number of times."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    node = models.CharField(max_length=253)
    namespace = models.CharField(max_length=253)
    pod = models.CharField(max_length=253)
    code = models.CharField(max_length=64)
    text = models.TextField(blank=True)
    # Problem of its storage, not of the node.
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
