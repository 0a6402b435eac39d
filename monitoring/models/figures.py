"""Activity of GPUs and runs over time: narrow rows, thinned with age (monitoring/figures/thinning.py).

A track is one GPU as long as the same runs had it, or a run's pod. So the figures of a run end where the next holder
begins, at every age, and a shared GPU is stored once.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from clusters.models import Cluster


class Track(models.Model):
    """A device with the runs that had it or, without a device, the CPU and memory of one run's pod."""

    id = models.AutoField(primary_key=True)
    # Digest of the track's identity (figures/store.py): several processes may create the same track at once.
    key = models.UUIDField(unique=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    node = models.CharField(max_length=253, blank=True)
    # UUID of a GPU or of a MIG device; empty: the pod itself.
    device = models.CharField(max_length=96, blank=True)
    label = models.CharField(max_length=120, blank=True)
    runs = ArrayField(models.UUIDField(), default=list)
    # For a shared GPU: the part that this one run's processes use.
    is_share = models.BooleanField(default=False)
    # Time of its newest figure, to within ten minutes.
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
    """Figure of a track: a sample (`step_seconds` 0), or one step that replaces `samples` samples (see thinning.py).

    Eight columns: a ninth would make each row eight bytes larger. The migration partitions the table by step.
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
    """Busy seconds of a run's GPUs on a day that is over; without a run: a mark that the day is summed up."""

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
