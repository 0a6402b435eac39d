"""Rows that workspaces and jobs have in common: the catalogue of images, and who runs what, in which size."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, ClassVar

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from accounts.models import Tenant
from accounts.text import visible
from clusters.references import is_latest, valid_reference
from quotas.models import Flavor, Pool

# Columns that their lists are searched in and sorted by, on pages and in the API.
SEARCHED = ("name", "image__slug", "owner__username")
ORDERINGS = ("-created_at", "created_at", "-changed_at", "name")
valid_version = RegexValidator(
    r"^\d{1,4}(\.\d{1,4}){0,3}\Z", _("Write a version in numbers and dots, as 12.4.")
)


class Image(models.Model):
    """A container reference, what it offers, and the user that it runs as. Without a tenant: entry of the catalogue."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(_("slug"), max_length=40, unique=True)
    name = models.CharField(_("name"), max_length=120, validators=[visible])
    description = models.CharField(_("description"), max_length=240, blank=True)
    reference = models.CharField(_("container reference"), max_length=512, validators=[valid_reference])
    offers_jupyter = models.BooleanField(_("offers Jupyter"), default=True)
    offers_ssh = models.BooleanField(_("offers SSH"), default=True)
    uid = models.PositiveIntegerField(_("user id"), default=1000)
    gid = models.PositiveIntegerField(_("group id"), default=1000)
    username = models.CharField(_("user name"), max_length=32, default="jovyan")
    home = models.CharField(_("home"), max_length=240, default="/home/jovyan")
    shell = models.CharField(_("shell"), max_length=240, default="/bin/bash")
    is_active = models.BooleanField(_("offered"), default=True)
    # Set for an image that people of one tenant named by its reference. It is in no catalogue (images.py).
    tenant = models.ForeignKey(
        Tenant,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("tenant"),
    )
    has_code_server = models.BooleanField(
        _("has code-server"),
        default=False,
        db_default=False,
        help_text=_("Every workspace of it then offers VS Code in the browser. It needs Jupyter, too."),
    )
    # For people who choose. Only the driver decides anything (drivers.py).
    version = models.CharField(
        _("version"), max_length=40, blank=True, default="", db_default="", validators=[visible]
    )
    cuda_version = models.CharField(
        _("CUDA version"), max_length=16, blank=True, default="", db_default="", validators=[valid_version]
    )
    frameworks = models.CharField(
        _("frameworks"),
        max_length=240,
        blank=True,
        default="",
        db_default="",
        validators=[visible],
        help_text=_("Short, with versions: PyTorch 2.5, JAX 0.4"),
    )
    least_driver = models.CharField(
        _("NVIDIA driver, at least"),
        max_length=24,
        blank=True,
        default="",
        db_default="",
        validators=[valid_version],
        help_text=_("As 550 or 550.54.14. Pools whose nodes all have an older one refuse the image."),
    )

    class Meta:
        verbose_name = _("image")
        verbose_name_plural = _("images")
        ordering: ClassVar = ["slug"]
        db_table = "workspaces_image"  # where it was before jobs used images, too
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(uid__gte=1) & Q(gid__gte=1), name="image_never_runs_as_root"),
            models.UniqueConstraint(fields=["tenant", "reference"], name="one_own_image_of_a_reference"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_own(self) -> bool:
        """True for an image by reference, False for an entry of the catalogue."""
        return self.tenant_id is not None

    @property
    def pull_policy(self) -> str:
        """Return Kubernetes' own default for an image by reference: its latest is pulled at each start. An admin
        decides on entries of the catalogue, so they are pulled once."""
        return "Always" if self.is_own and is_latest(self.reference) else "IfNotPresent"


@dataclass(frozen=True)
class Exposition:
    """Address at which a program serves figures for Prometheus, in its own container."""

    port: int
    path: str

    @staticmethod
    def fields(at: Exposition | None) -> dict[str, Any]:
        """Return the fields of a workload that keep it."""
        return {"metrics_port": at.port, "metrics_path": at.path} if at else {}


class Workload(models.Model):
    """A workspace or a job: who it belongs to, what runs in it, and how large it is."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="%(class)ss", verbose_name=_("tenant")
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="%(class)ss", verbose_name=_("owner")
    )
    name = models.CharField(_("name"), max_length=63)
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="+", verbose_name=_("image"))
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    flavor = models.ForeignKey(
        Flavor, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("flavor")
    )
    units = models.PositiveIntegerField(_("units"), default=0)
    # As in a claim: set where GPUs are cut by memory and cores.
    cards = models.PositiveSmallIntegerField(default=0, db_default=0)
    card_memory_mib = models.PositiveIntegerField(null=True)
    card_cores = models.PositiveSmallIntegerField(null=True)
    cpu_millicores = models.PositiveIntegerField(_("CPU (millicores)"))
    memory_mib = models.PositiveIntegerField(_("memory (MiB)"))
    env = models.JSONField(default=dict, blank=True)
    repository = models.CharField(max_length=1024, blank=True)
    priority = models.SmallIntegerField(default=0)
    max_runtime_minutes = models.PositiveIntegerField(null=True, help_text=_("Empty: it runs until stopped."))
    # Where its program serves figures for Prometheus; null: nowhere.
    metrics_port = models.PositiveIntegerField(null=True)
    metrics_path = models.CharField(max_length=200, blank=True, default="", db_default="")
    notify = models.BooleanField(
        default=True, db_default=True, help_text=_("Notify its owner when it is ready, fails or stops.")
    )

    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    deleted_at = models.DateTimeField(_("deleted at"), null=True)
    changed_at = models.DateTimeField(auto_now=True)
    last_event = models.PositiveIntegerField(default=0, help_text=_("Number of the newest event."))
    # Set with the first mark (request for a reconcile), cleared by the reconcile that saw the last mark.
    dirty_since = models.DateTimeField(_("dirty since"), null=True, db_index=True)
    dirty_marks = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def exposition(self) -> Exposition | None:
        return None if self.metrics_port is None else Exposition(self.metrics_port, self.metrics_path)

    @cached_property
    def new_events(self) -> list[Any]:
        """Events that were added to this row and that `changing.py` has not written yet."""
        return []


class EventRow(models.Model):
    """Event of a workload, numbered 1, 2, 3 … within it and kept for ever. Its text comes from its code."""

    class Level(models.TextChoices):
        INFO = "info", _("info")
        WARNING = "warning", _("warning")
        ERROR = "error", _("error")

    number = models.PositiveIntegerField()
    run = models.UUIDField(null=True)
    at = models.DateTimeField()
    level = models.CharField(max_length=8, choices=Level, default=Level.INFO)
    code = models.CharField(max_length=64)
    data = models.JSONField(default=dict)

    class Meta:
        abstract = True


from workloads.logs.models import LogChunk, LogLimit, LogStream  # noqa: E402, F401 - Django looks for tables here
