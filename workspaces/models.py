"""Workspaces: what their owner wants (`desired`), what was last seen (`phase`), and what happened (`Event`)."""

from __future__ import annotations

import json
import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.credentials.secrets import decrypt
from accounts.models import Tenant, valid_time_zone
from quotas.models import Booking
from workloads import models as workloads
from workloads.models import EventRow, Image, Workload

SEARCHED = (*workloads.SEARCHED, "node")


class Desired(models.TextChoices):
    RUNNING = "running", _("running")
    STOPPED = "stopped", _("stopped")
    DELETED = "deleted", _("deleted")


class Phase(models.TextChoices):
    WAITING = "waiting", _("waiting")
    STARTING = "starting", _("starting")
    READY = "ready", _("ready")
    STOPPING = "stopping", _("stopping")
    STOPPED = "stopped", _("stopped")
    FAILED = "failed", _("failed")
    DELETING = "deleting", _("deleting")
    DELETED = "deleted", _("deleted")


IN_TRANSITION = (Phase.STARTING, Phase.STOPPING, Phase.DELETING)


class Step(models.TextChoices):
    """The ten steps of a start, in order. A step is done when its evidence exists."""

    REQUEST = "request", _("Request")
    ADMISSION = "admission", _("Admission")
    DISK = "disk", _("Disk")
    CONTAINER = "container", _("Container")
    SCHEDULED = "scheduled", _("Scheduled")
    IMAGE = "image", _("Image")
    MOUNTS = "mounts", _("Mounts")
    STARTED = "started", _("Started")
    ENDPOINT = "endpoint", _("Endpoint")
    READY = "ready", _("Ready")


STEPS = tuple(Step)


NO_DEADLINE = ""  # value for a trouble that may last


class Ending(models.TextChoices):
    """Reason why the current run is being taken down; empty while it is not."""

    STOP = "stop", _("stop")
    RESTART = "restart", _("restart")
    INTERRUPTED = "interrupted", _("interrupted")
    REQUEUE = "requeue", _("sent back to the queue")
    RECLAIM = "reclaim", _("asked to return its GPUs")
    FAILED = "failed", _("failed")
    DELETE = "delete", _("delete")


class Workspace(Workload):
    """A named Jupyter + SSH environment of one person in one tenant; started and stopped many times."""

    disk_mib = models.PositiveIntegerField(
        _("local disk (MiB)"), default=0, help_text=_("A local disk beside the home; 0: none.")
    )
    # The size from the next start on, as sizing.Size writes it; null: as now.
    next_size = models.JSONField(null=True)
    # Image, environment, repository and secrets from the next start on, as state/settings.py keeps them.
    next_settings = models.JSONField(default=dict, db_default={})
    # Slug of the image before the last change of it, until a run with the new one was ready and was ended.
    previous_image = models.CharField(max_length=40, blank=True, default="", db_default="")
    # Size and place of the waiting request that the present one replaced; null: none, or it was undone.
    former_size = models.JSONField(null=True)

    desired = models.CharField(_("desired"), max_length=8, choices=Desired, default=Desired.RUNNING)
    delete_disk = models.BooleanField(
        default=False, help_text=_("A deletion takes what was made for it along.")
    )
    ending = models.CharField(max_length=12, choices=Ending, blank=True)

    # The current run, or the last one: the id of its claim.
    run = models.UUIDField(_("run"), null=True)
    phase = models.CharField(_("phase"), max_length=8, choices=Phase, default=Phase.WAITING)
    message_code = models.CharField(max_length=64, blank=True)
    message_data = models.JSONField(default=dict)
    step = models.CharField(
        _("step"), max_length=10, choices=Step, default=Step.REQUEST, help_text=_("Under way, or the last.")
    )
    step_since = models.DateTimeField(_("step since"))
    # Why the last start failed, as {code, data, at}; else null.
    failure = models.JSONField(null=True)
    # Troubles of the current step: {code: RFC 3339 time since when, or NO_DEADLINE if it cannot end the run}.
    troubles = models.JSONField(default=dict)
    trouble_since = models.DateTimeField(null=True)
    # When the present one ends the start, if it lasts; null: never.
    gives_up_at = models.DateTimeField(null=True)
    # Problems of the run that come from outside, as conditions.Condition; the room above finds them.
    conditions = models.JSONField(default=list, db_default=[])
    node = models.CharField(_("node"), max_length=253, blank=True)
    host = models.CharField(max_length=253, blank=True)
    # Where Berth reaches Jupyter, if people do not reach it at `host`; else empty.
    jupyter_host = models.CharField(max_length=253, blank=True, default="", db_default="")
    jupyter_port = models.PositiveIntegerField(null=True)
    ssh_port = models.PositiveIntegerField(null=True)
    # Apps that its owner declared, as state/declared.py keeps them.
    apps = models.JSONField(default=list, db_default=[])
    # The pod of the run as last seen; its end is proven when it was seen in a terminal phase.
    pod_uid = models.CharField(_("pod uid"), max_length=64, blank=True)
    pod_ended = models.BooleanField(default=True)
    container_restarts = models.PositiveIntegerField(default=0, help_text=_("Within that pod."))

    started_at = models.DateTimeField(
        _("started at"), null=True, help_text=_("When the current run was admitted.")
    )
    ready_at = models.DateTimeField(_("ready at"), null=True)
    stops_at = models.DateTimeField(null=True, help_text=_("When the lifetime of the current run ends."))
    # Time of the lifetime's next warning, or of the stop itself.
    lifetime_due_at = models.DateTimeField(null=True, db_index=True)
    # The person's own wish: it is stopped when nothing was done in it for so long. A policy may ask for less.
    idle_minutes = models.PositiveIntegerField(null=True)
    # Idleness of the current run, as the room above last measured it (runs/idleness.py).
    idle_since = models.DateTimeField(null=True)
    idle_busy_by = models.JSONField(default=list, db_default=[])
    idle_stops_at = models.DateTimeField(null=True)
    idle_warned_at = models.DateTimeField(null=True)
    kept_alive_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("workspace")
        verbose_name_plural = _("workspaces")
        ordering: ClassVar = ["-created_at", "id"]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "phase"], name="workspace_tenant_phase"),
            models.Index(fields=["-created_at", "-id"], name="workspace_newest"),
            # Those that the clock looks for every five seconds, among all that there ever were.
            models.Index(
                fields=["pool"],
                condition=Q(phase__in=IN_TRANSITION) | ~Q(ending="") | Q(dirty_since__isnull=False),
                name="workspace_unsettled",
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "owner", "name"],
                condition=Q(deleted_at__isnull=True),
                name="one_workspace_of_a_name_per_person_and_tenant",
            )
        ]

    def get_phase_display(self) -> str:  # type: ignore[no-redef]  # the plugin adds the same
        """Label of the phase. Django's own builds the list of choices again for each of fifty cards."""
        return str(Phase(self.phase).label)

    @property
    def object_name(self) -> str:
        """Name of the workspace's Kubernetes objects."""
        return f"ws-{self.id}"


class WorkspaceSecret(models.Model):
    """Secrets for the owner alone, encrypted (accounts.credentials.secrets): a database dump reveals none of them."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="secret")
    # What the tokens of its Jupyter are made from, and how often they were replaced (state/jupyter.py).
    jupyter_token = models.TextField()
    replaced = models.PositiveIntegerField(default=0, db_default=0)
    gateway_replaced = models.PositiveIntegerField(default=0, db_default=0)
    # API tokens by which Jupyter's current token was asked for.
    handed_to = models.JSONField(default=list, db_default=[])
    host_key = models.TextField(help_text=_("OpenSSH private key (ed25519), stable over all runs."))
    host_key_public = models.TextField(help_text=_("The public half, in clear."))
    host_key_fingerprint = models.CharField(max_length=64)
    env = models.TextField(help_text=_("JSON object of secret_env."))
    # The same from the next start on; empty: as now.
    next_env = models.TextField(blank=True, default="", db_default="")

    def clear_env(self) -> dict[str, str]:
        """Return secret_env in clear: only for the Secret in the cluster and for the owner's clones."""
        values: dict[str, str] = json.loads(decrypt(self.env)) if self.env else {}
        return values

    def clear_next_env(self) -> dict[str, str]:
        """Return what `clear_env` will return from the next start on."""
        if not self.next_env:
            return self.clear_env()
        values: dict[str, str] = json.loads(decrypt(self.next_env))
        return values


class HostKey(models.Model):
    """SSH host key of a person's name for workspaces. Whichever workspace has the name uses it: ssh keeps host keys by
    name, and refuses another key for the same."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    host = models.CharField(max_length=63)  # the name as naming.host_label has it
    host_key = models.TextField()  # as in WorkspaceSecret
    host_key_public = models.TextField()
    host_key_fingerprint = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["owner", "host"], name="one_host_key_per_person_and_name")
        ]


class Event(EventRow):
    """Event of a workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="events")
    step = models.CharField(max_length=10, choices=Step, blank=True)

    class Meta:
        ordering: ClassVar = ["workspace", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "number"], name="events_numbered_once_per_workspace")
        ]


class GatewayPass(models.Model):
    """Access of a browser to one workspace's Jupyter, or to one of its apps.

    A ticket for one use, then a pass while its session lives.
    """

    digest = models.CharField(primary_key=True, max_length=64)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    port = models.PositiveIntegerField(null=True)  # of an app; null: Jupyter
    # Whose session it is. Null in rows of earlier versions.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    session = models.ForeignKey(Session, models.CASCADE, related_name="+")
    is_ticket = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)


class ShareRole(models.TextChoices):
    """Role of a colleague. `look`: page, logs, figures. `work`: all apps, Jupyter and SSH too, as the owner."""

    LOOK = "look", _("look")
    WORK = "work", _("work")


class Share(models.Model):
    """Access of a colleague of the tenant to one workspace. The row goes when the right ends (runs/sharing.py)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="shares")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    role = models.CharField(max_length=4, choices=ShareRole)
    # The owner who gave it: of a workspace with another owner it opens nothing.
    given_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("share")
        verbose_name_plural = _("shares")
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_share_per_person_and_workspace")
        ]


class Schedule(models.Model):
    """Weekly times at which a workspace is started and stopped (runs/weekly.py), and what was announced of them."""

    workspace = models.OneToOneField(Workspace, models.CASCADE, related_name="schedule")
    is_on = models.BooleanField(_("on"), default=True)
    start = models.TimeField(_("start"))
    stop = models.TimeField(_("stop"))
    days = models.JSONField(_("days"), help_text=_("1: Monday, 7: Sunday."))
    time_zone = models.CharField(_("time zone"), max_length=64, validators=[valid_time_zone])
    # As weekly.Known has them; `due_at`: when to look next, null: never.
    done_until = models.DateTimeField()
    due_at = models.DateTimeField(_("looked at next"), null=True, db_index=True)
    stops_at = models.DateTimeField(null=True)
    waits_until = models.DateTimeField(null=True)
    by_hand_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")

    def __str__(self) -> str:
        return f"{self.start:%H:%M}–{self.stop:%H:%M} {self.time_zone}"


class Template(models.Model):
    """Launch form that an owner filled in for a tenant. `body`: fields of a launch (api/templates.py), no secrets."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="templates", verbose_name=_("tenant"))
    name = models.CharField(_("name"), max_length=63)
    body = models.JSONField(default=dict)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("template")
        verbose_name_plural = _("templates")
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], name="one_template_of_a_name")
        ]

    def __str__(self) -> str:
        return self.name


class ClassLaunch(models.Model):
    """Workspaces launched for a list of people by an owner of their tenant. Each has the class's name."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", verbose_name=_("tenant"))
    name = models.CharField(_("name"), max_length=63)
    template = models.ForeignKey(Template, models.SET_NULL, null=True, related_name="+")
    # Fields of a launch as a template keeps them.
    body = models.JSONField(default=dict)
    booking = models.ForeignKey(Booking, models.SET_NULL, null=True, related_name="+")
    # A person's workspace is launched at their next sign-in instead of now.
    at_sign_in = models.BooleanField(default=False)
    # Whoever launched it, or added people last. While they own the tenant, workspaces are launched.
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    stopped_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("class launch")
        verbose_name_plural = _("class launches")
        ordering: ClassVar = ["-created_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], name="one_class_launch_of_a_name")
        ]

    def __str__(self) -> str:
        return self.name


class Seat(models.Model):
    """Person of a class launch: their workspace, or why there is none."""

    class_launch = models.ForeignKey(ClassLaunch, models.CASCADE, related_name="seats")
    username = models.CharField(max_length=150)  # as it was written
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="+")
    # From when on the workspace is launched; null: from the next sign-in on.
    due_at = models.DateTimeField(null=True)
    # Refusal of the launch, in the language of `ClassLaunch.by`. Empty: none.
    code = models.CharField(max_length=64, blank=True)
    message = models.TextField(blank=True)
    hint = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["pk"]
        indexes: ClassVar = [
            models.Index(
                fields=["due_at", "id"], condition=Q(workspace=None, code=""), name="seats_without_workspace"
            )
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["class_launch", "username"], name="one_seat_per_person_and_class")
        ]


class WarmImage(models.Model):
    """Image that a node of a booking's pool is to have when the booking begins, and how far that is."""

    booking = models.ForeignKey(Booking, models.CASCADE, related_name="+")
    image = models.ForeignKey(Image, models.CASCADE, related_name="+")
    node = models.CharField(max_length=253)
    # When the pod that pulls it was made; null: not yet, or the node had it already.
    pulled_since = models.DateTimeField(null=True)
    ready_at = models.DateTimeField(null=True)
    given_up_at = models.DateTimeField(null=True)
    # Why it was given up, in the cluster's words explained. Empty: its time was over, or the pod was deleted.
    code = models.CharField(max_length=64, blank=True)
    data = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["booking", "image", "node"], name="one_warm_image_per_booking_and_node"
            )
        ]

    def __str__(self) -> str:
        return f"{self.image_id} {self.node}"

    @property
    def is_under_way(self) -> bool:
        """Return True while a pod pulls it."""
        return self.pulled_since is not None and self.ready_at is None and self.given_up_at is None
