"""Processes as last heard, sums of what all of them have counted, and the release that made the tables."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from vitals.release import OLDEST, RELEASE


class Process(models.Model):
    """A process of a part (worker, watcher, web …). A silent process counts as gone."""

    part = models.CharField(max_length=20)
    host = models.CharField(max_length=253)
    pid = models.PositiveIntegerField()
    seen_at = models.DateTimeField(help_text="By the database's clock.")
    since = models.DateTimeField(db_default=Now(), help_text="Since when its part is heard, without a break.")
    gauges = models.JSONField(default=dict, help_text="What it has at the moment, by the gauge's name.")
    release = models.PositiveIntegerField(db_default=1)

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


class Release(models.Model):
    """Release whose `migrate` ran last. One row; none in a database that an older Berth made."""

    number = models.PositiveIntegerField()
    oldest = models.PositiveIntegerField(help_text="Oldest release whose code works on these tables.")

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=models.Q(id=1), name="one_release")]

    def __str__(self) -> str:
        return f"{self.number}, takes {self.oldest}"

    @classmethod
    def write(cls, database: str) -> None:
        """Write that the tables are those of this code."""
        cls.objects.using(database).update_or_create(pk=1, defaults={"number": RELEASE, "oldest": OLDEST})
