"""Processes as last heard, and sums of what all of them have counted."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class Process(models.Model):
    """A process of a part (worker, watcher, web …). A silent process counts as gone."""

    part = models.CharField(max_length=20)
    host = models.CharField(max_length=253)
    pid = models.PositiveIntegerField()
    seen_at = models.DateTimeField(help_text="By the database's clock.")
    since = models.DateTimeField(db_default=Now(), help_text="Since when its part is heard, without a break.")
    gauges = models.JSONField(default=dict, help_text="What it has at the moment, by the gauge's name.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["part", "host", "pid"], name="one_row_per_process")
        ]

    def __str__(self) -> str:
        return f"{self.part} {self.host}/{self.pid}"


class Figure(models.Model):
    """A Prometheus sample, the sum of all processes. A histogram's bucket holds only its own values, not lower ones."""

    name = models.CharField(max_length=80)
    labels = models.CharField(max_length=240, help_text="JSON, sorted: it is half of the key.")
    value = models.FloatField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["name", "labels"], name="one_row_per_figure")
        ]

    def __str__(self) -> str:
        return f"{self.name}{self.labels}"
