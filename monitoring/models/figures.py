"""What GPUs and runs did over time: narrow rows, thinned with age (monitoring/figures/thinning.py).

A track is one GPU as long as the same runs had it, or a run's pod: so what a run's person sees ends where the next
holder begins, at every age, and a GPU that several share is stored once.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from clusters.models import Cluster


class Track(models.Model):
    """One device with those who had it, or, without a device, the CPU and memory of one run's pod."""

    id = models.AutoField(primary_key=True)
    # A digest of all that makes it this one (figures/store.py): several processes may come upon it at once.
    key = models.UUIDField(unique=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    node = models.CharField(max_length=253, blank=True)
    # The UUID of a GPU or of a MIG device; empty: the pod itself.
    device = models.CharField(max_length=96, blank=True)
    label = models.CharField(max_length=120, blank=True)
    runs = ArrayField(models.UUIDField(), default=list)
    # Of a GPU that several have: what this one run's processes take of it.
    is_share = models.BooleanField(default=False)
    # Its newest figure, give or take ten minutes.
    seen_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            GinIndex(fields=["runs"], name="tracks_of_a_run"),
            models.Index(fields=["cluster", "device", "-seen_at"], name="tracks_of_a_device"),
            models.Index(fields=["seen_at"], name="tracks_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.node}/{self.label}"


class Figure(models.Model):
    """Of one track: a sample (`step_seconds` 0), or what is kept of so many `samples` of one step (see thinning.py).

    Eight columns, as with nine each row would be larger by eight bytes. Partitioned by step in the migration.
    """

    pk = models.CompositePrimaryKey("track_id", "at", "step_seconds")
    track_id = models.IntegerField()
    at = models.IntegerField(help_text="Seconds since 1970: of the sample, or when the step began.")
    memory_mib = models.IntegerField(null=True)
    use_thousandths = models.IntegerField(null=True, help_text="Of a percent of a GPU; of a core of a CPU.")
    step_seconds = models.SmallIntegerField()
    samples = models.SmallIntegerField()
    power_watts = models.SmallIntegerField(null=True)
    temperature_celsius = models.SmallIntegerField(null=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["at"], name="figures_by_age")]


class BusyDay(models.Model):
    """For how long a run's GPUs were busy on a day that is over; without a run: that day is summed up, of all runs."""

    run = models.UUIDField(null=True)
    day = models.IntegerField(help_text="Days since 1970, in UTC.")
    seconds = models.FloatField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "day"], name="one_busy_day_of_a_run", nulls_distinct=False
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["day"], name="busy_days_by_age")]

    def __str__(self) -> str:
        return f"{self.run}: {self.seconds:.0f} s"
