"""Pools of nodes, each with one way of sharing a GPU, and ready-made sizes."""

from __future__ import annotations

import uuid
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import ClassVar

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.text import visible
from clusters.models import Cluster

# Less starts no container that offers Jupyter or SSH.
LEAST_CPU_MILLICORES = 100
LEAST_MEMORY_MIB = 128


class Sharing(models.TextChoices):
    """Ways in which a pool shares a GPU."""

    EXCLUSIVE = "exclusive", _("whole GPUs")
    MIG = "mig", _("MIG instances")
    TIME_SLICING = "time-slicing", _("time-slicing")
    MPS = "mps", _("MPS")
    HAMI = "hami", _("HAMi")
    GPU_MANAGER = "gpu-manager", _("gpu-manager")


class Pool(models.Model):
    """A set of nodes of one cluster, chosen by labels, with one way of sharing a GPU. Counted in whole units."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(_("slug"), max_length=40, unique=True)
    name = models.CharField(_("name"), max_length=120, validators=[visible])
    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="pools", verbose_name=_("cluster")
    )
    node_labels = models.JSONField(
        _("node labels"),
        default=dict,
        blank=True,
        help_text=_("A node belongs to the pool when it has all of these."),
    )
    # Conditions beside the labels above; see `quotas/pools/selection.py`. Empty: any.
    match_product = models.CharField(
        _("GPU product"), max_length=120, blank=True, help_text=_("As GPU Feature Discovery names it.")
    )
    match_gpu_memory_mib = models.PositiveIntegerField(_("GPU memory at least (MiB)"), null=True, blank=True)
    match_compute_capability = models.CharField(
        _("compute capability at least"), max_length=8, blank=True, help_text=_("As 8.6.")
    )
    match_ecc = models.BooleanField(_("ECC"), null=True, blank=True)
    sharing = models.CharField(_("sharing"), max_length=12, choices=Sharing, default=Sharing.EXCLUSIVE)
    resource_name = models.CharField(
        _("resource"),
        max_length=120,
        blank=True,
        default="nvidia.com/gpu",
        help_text=_("The extended resource that one unit is; empty: a pool without GPUs."),
    )
    units_per_gpu = models.PositiveIntegerField(
        _("units per GPU"), default=1, help_text=_("1 for whole GPUs; instances or replicas else.")
    )
    mig_profile = models.CharField(_("MIG profile"), max_length=32, blank=True, help_text=_("As 1g.10gb."))
    one_unit_each = models.BooleanField(
        _("one unit each"),
        default=False,
        db_default=False,
        help_text=_(
            "A run gets one replica at most, as the device plugin's failRequestsGreaterThanOne has it."
        ),
    )
    # Amounts by name, for each GPU of a pod; a part of a GPU, or a pod without, counts as one.
    extra_resources = models.JSONField(
        _("resources beside GPUs"),
        default=dict,
        db_default={},
        blank=True,
        help_text=_(
            "What each pod requests besides, for RDMA: so many for each of its GPUs, or parts of one."
        ),
    )
    gpu_product = models.CharField(_("GPU"), max_length=120, blank=True)
    gpu_memory_mib = models.PositiveIntegerField(_("memory of a GPU (MiB)"), null=True, blank=True)
    unit_memory_mib = models.PositiveIntegerField(_("memory of a unit (MiB)"), null=True, blank=True)
    compute_capability = models.CharField(_("compute capability"), max_length=8, blank=True)
    ecc = models.BooleanField(_("ECC"), null=True, blank=True)
    tolerations = models.JSONField(_("tolerations"), default=list, blank=True)
    runtime_class = models.CharField(_("runtime class"), max_length=253, blank=True)
    # Overcommit: a pod's requests are its limits divided by this.
    cpu_overcommit = models.DecimalField(_("CPU overcommit"), max_digits=5, decimal_places=2, default=1)
    memory_overcommit = models.DecimalField(_("memory overcommit"), max_digits=5, decimal_places=2, default=1)
    image_pull_secrets = models.JSONField(
        _("image pull secrets"), default=list, blank=True, help_text=_("In addition to those of the cluster.")
    )
    driver_path = models.CharField(
        _("driver's path on the nodes"),
        max_length=1024,
        blank=True,
        help_text=_("For nodes without the NVIDIA runtime: mounted read-only. Empty on any node of today."),
    )
    weight = models.DecimalField(
        _("weight"),
        max_digits=6,
        decimal_places=2,
        default=Decimal(1),
        db_default=Decimal(1),
        help_text=_("What a GPU-hour of it counts against budgets and fair shares."),
    )
    is_open = models.BooleanField(
        pgettext_lazy("a pool that is open", "in use"),
        default=True,
        db_default=True,
        help_text=_(
            "If out of use, nothing new starts here. Running workspaces are not affected; requests keep waiting."
        ),
    )
    # Set when an admission pass is enqueued, cleared by the pass before it reads.
    pass_queued_at = models.DateTimeField(null=True, editable=False)
    # Factors that widen forecasts to either side, learned from actual starts (`forecast.py`).
    forecast_early = models.FloatField(default=1, db_default=1, editable=False)
    forecast_late = models.FloatField(default=1, db_default=1, editable=False)
    forecast_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("pool")
        verbose_name_plural = _("pools")
        ordering: ClassVar = ["slug"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(units_per_gpu__gte=1), name="pool_units_per_gpu_at_least_1"),
            models.CheckConstraint(
                condition=Q(cpu_overcommit__gte=1) & Q(memory_overcommit__gte=1),
                name="pool_overcommit_at_least_1",
            ),
            models.CheckConstraint(condition=Q(weight__gte=0), name="pool_weight_not_negative"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_gpus(self) -> bool:
        return bool(self.resource_name)

    def gpus(self, units: int) -> Fraction:
        """Convert units to GPUs, exactly."""
        return Fraction(units, self.units_per_gpu)

    def beside_gpus(self, units: int) -> dict[str, int]:
        """Return the extended resources that a pod with so many units requests beside GPUs."""
        if not self.extra_resources:
            return {}
        times = max(1, ceil(self.gpus(units)))
        return {name: count * times for name, count in self.extra_resources.items()}


class Flavor(models.Model):
    """A ready-made size."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(_("slug"), max_length=40, unique=True)
    name = models.CharField(_("name"), max_length=120, validators=[visible])
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="flavors", verbose_name=_("pool"))
    units = models.PositiveIntegerField(_("units"), default=0, help_text=_("GPUs, instances or replicas."))
    cpu_millicores = models.PositiveIntegerField(
        _("CPU (millicores)"), validators=[MinValueValidator(LEAST_CPU_MILLICORES)]
    )
    memory_mib = models.PositiveIntegerField(
        _("memory (MiB)"), validators=[MinValueValidator(LEAST_MEMORY_MIB)]
    )

    class Meta:
        verbose_name = _("flavor")
        verbose_name_plural = _("flavors")
        ordering: ClassVar = ["pool__slug", "units", "cpu_millicores"]

    def __str__(self) -> str:
        return self.name
