"""Jobs: what their owner wants (`desired`), their parts with an attempt for each run, and what happened (`Event`)."""

from __future__ import annotations

import json
import uuid
from typing import ClassVar

from django.db import models
from django.db.models import F, Q, Value
from django.utils.translation import gettext_lazy as _

from accounts.credentials.secrets import decrypt
from storage.models import Snapshot, Volume
from workloads.models import EventRow, Workload

from .naming import name_of


class Desired(models.TextChoices):
    DONE = "done", _("done")
    CANCELLED = "cancelled", _("cancelled")
    DELETED = "deleted", _("deleted")


class Framework(models.TextChoices):
    TORCHRUN = "torchrun", "torchrun"
    RANKS = "ranks", "ranks"


class Phase(models.TextChoices):
    WAITING = "waiting", _("waiting")
    STARTING = "starting", _("starting")
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    CANCELLING = "cancelling", _("cancelling")
    CANCELLED = "cancelled", _("cancelled")


OVER = (Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED)


class Job(Workload):
    """A batch work of one person in one tenant: its parts run until each has succeeded or failed for good."""

    command = models.JSONField(default=list, help_text=_("Program and arguments; empty: its script runs."))
    completions = models.PositiveIntegerField(_("completions"), default=1)
    parallelism = models.PositiveIntegerField(_("parallelism"), default=1)
    retries = models.PositiveSmallIntegerField(
        _("retries"), default=3, help_text=_("Failures of a part that do not end it.")
    )
    final_exit_codes = models.JSONField(default=list)
    # Values by name, of which each combination is a part; null: parts differ by their index alone.
    sweep = models.JSONField(null=True)
    ttl_hours = models.PositiveIntegerField(null=True, help_text=_("Deleted so long after its end."))
    # How its programs find each other; empty: they are told nothing of each other.
    framework = models.CharField(max_length=8, choices=Framework, blank=True, default="", db_default="")
    nodes = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text=_("Pods of an attempt, all of which it needs.")
    )
    processes_per_node = models.PositiveSmallIntegerField(default=1, db_default=1)
    # Volume that it mounts, for checkpoints; null: they are in the home.
    checkpoints = models.UUIDField(null=True)
    # The dataset that it writes, and the version of it that its success published.
    writes = models.ForeignKey(Volume, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    version = models.ForeignKey(
        Snapshot, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # It has not begun, because it waits for the jobs of its dependencies.
    is_held = models.BooleanField(default=False, db_default=False)

    desired = models.CharField(_("desired"), max_length=9, choices=Desired, default=Desired.DONE)
    phase = models.CharField(_("phase"), max_length=10, choices=Phase, default=Phase.WAITING)
    message_code = models.CharField(max_length=64, blank=True)
    message_data = models.JSONField(default=dict)
    # Why it failed, as {code, data, at}; else null.
    failure = models.JSONField(null=True)
    # Troubles of the present attempts, and refusals of the cluster: {code: RFC 3339 time since when}.
    troubles = models.JSONField(default=dict)
    started_at = models.DateTimeField(_("started at"), null=True)
    ended_at = models.DateTimeField(_("ended at"), null=True)
    expires_at = models.DateTimeField(null=True, help_text=_("When it is deleted."))

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        ordering: ClassVar = ["-created_at", "id"]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "phase"], name="job_tenant_phase"),
            models.Index(fields=["-created_at", "-id"], name="job_newest"),
            models.Index(
                fields=["expires_at"],
                condition=Q(deleted_at__isnull=True, expires_at__isnull=False),
                name="job_expires",
            ),
            # Those that the keeper looks for every five seconds, among all that there ever were.
            models.Index(
                fields=["pool"],
                condition=Q(deleted_at__isnull=True)
                & (Q(desired="deleted") | Q(dirty_since__isnull=False) | ~Q(phase__in=OVER)),
                name="job_unsettled",
            ),
        ]

    @property
    def object_name(self) -> str:
        """Name of its Secret."""
        return name_of(self.id)


class On(models.TextChoices):
    """Way in which a job has to be over before another begins."""

    SUCCESS = "success", _("success")
    END = "end", _("end")


class Dependency(models.Model):
    """Job that has to be over before another begins. Older than the other, so none can wait in a circle."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="after")
    predecessor = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="followed_by")
    on = models.CharField(max_length=7, choices=On, default=On.SUCCESS)

    class Meta:
        ordering: ClassVar = ["job", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["job", "predecessor"], name="one_dependency_per_pair_of_jobs"),
            models.CheckConstraint(condition=~Q(job=F("predecessor")), name="no_job_waits_for_itself"),
        ]


class JobSecret(models.Model):
    """Secrets for the job's pods alone, encrypted: a database dump reveals none of it."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="secret")
    env = models.TextField(help_text=_("JSON object of secret_env."))
    script = models.TextField(blank=True)

    def clear_env(self) -> dict[str, str]:
        values: dict[str, str] = json.loads(decrypt(self.env)) if self.env else {}
        return values

    def clear_script(self) -> str:
        return decrypt(self.script) if self.script else ""


class PartPhase(models.TextChoices):
    PENDING = "pending", _("pending")
    WAITING = "waiting", _("waiting")
    STARTING = "starting", _("starting")
    RUNNING = "running", _("running")
    ENDING = "ending", _("ending")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


UP = (PartPhase.STARTING, PartPhase.RUNNING)
HOLD_UNITS = (*UP, PartPhase.ENDING)
LIVE = (PartPhase.WAITING, *HOLD_UNITS)
SETTLED = (PartPhase.SUCCEEDED, PartPhase.FAILED, PartPhase.CANCELLED)


class Ending(models.TextChoices):
    """Reason why a part's attempt is being taken down; empty while it is not."""

    CANCEL = "cancel", _("cancelled")
    RECLAIM = "reclaim", _("asked to return its GPUs")
    AGAIN = "again", _("ended from outside")
    REQUEUE = "requeue", _("sent back to the queue")
    FAILED = "failed", _("failed")


class Part(models.Model):
    """Index of a job, which has to succeed once. Its claim in the queue has the same index as `part`."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="parts")
    index = models.PositiveIntegerField()
    parameters = models.JSONField(default=dict)
    phase = models.CharField(max_length=9, choices=PartPhase, default=PartPhase.PENDING)
    ending = models.CharField(max_length=8, choices=Ending, blank=True)
    failures = models.PositiveSmallIntegerField(
        default=0, help_text=_("Attempts that count against retries.")
    )
    # Its present claim, or the last; the attempt under way, or the last.
    run = models.UUIDField(null=True)
    number = models.PositiveIntegerField(default=0)
    # Newest values that its program reported, by name.
    metrics = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    # Part of its work that is done, from 0 to 1; and since when its run reports that: {run, at, since, begun_with}.
    progress = models.FloatField(null=True)
    pace = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))

    class Meta:
        ordering: ClassVar = ["job", "index"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["job", "index"], name="one_part_per_index_of_a_job")
        ]


class Series(models.Model):
    """Values of one name that a part reported. Old ones are thinned: one of each `stride` is kept."""

    part = models.ForeignKey(Part, on_delete=models.CASCADE, related_name="series")
    name = models.CharField(max_length=64)
    # [step, value, seconds since 1970] in order of arrival.
    points = models.JSONField(default=list)
    newest = models.JSONField(default=list)
    stride = models.PositiveIntegerField(default=1)
    seen = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["part", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["part", "name"], name="one_series_of_a_name_per_part")
        ]


# Reasons of ends that somebody asked for, or that were known from the start.
PLANNED = frozenset({"succeeded", "ended_by_cancel", "ended_by_reclaim", "ended_by_again", "gave_way"})


class Attempt(models.Model):
    """Run of a part, from its admission until the end of all its pods is proven."""

    part = models.ForeignKey(Part, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    run = models.UUIDField(unique=True)
    node = models.CharField(max_length=253, blank=True)
    # Its pods as last seen, by index: {"0": {"uid", "node", "ended", "exit_code", "reason", "out_code"}}. One's end is
    # proven when it was seen in a terminal phase. `out_code`: why its node was out of order when others had ended.
    members = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    exit_code = models.IntegerField(null=True)
    # Why it ended; while it starts, what keeps it from starting, and since when.
    reason = models.CharField(max_length=64, blank=True)
    data = models.JSONField(default=dict)
    trouble_since = models.DateTimeField(null=True)
    # Present problems of its node and GPUs: [{code, data, level}].
    conditions = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    counted = models.BooleanField(default=False)
    # GPUs that it had, by their UUIDs; the last lines of its output, if its end brought some.
    gpus = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    gpu_use_percent = models.FloatField(null=True)
    tail = models.TextField(blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["part", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["part", "number"], name="attempts_numbered_once_per_part")
        ]

    @property
    def object_name(self) -> str:
        """Name of its Job in the cluster: an attempt has one claim, and a claim never two Jobs."""
        return name_of(self.run)

    @property
    def recorded_run(self) -> uuid.UUID | None:
        """Its run, if it failed or was interrupted on a node: the room above keeps a record of each such run."""
        is_so = self.ended_at is not None and self.reason not in PLANNED and any(self.nodes)
        return self.run if is_so else None

    @property
    def unproven(self) -> bool:
        """True if the end of a pod that was seen is not proven."""
        return any(not member["ended"] for member in self.members.values())

    @property
    def nodes(self) -> list[str]:
        """Nodes of its pods, by index; of one that has none yet, empty."""
        return [self.members[key]["node"] for key in sorted(self.members, key=int)]


class Event(EventRow):
    """Event of a job. `data` has the index and the attempt that it is about."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")

    class Meta:
        ordering: ClassVar = ["job", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["job", "number"], name="events_numbered_once_per_job")
        ]
