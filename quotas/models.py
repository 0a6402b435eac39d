"""What can be had and who may have how much: pools, flavors, quotas, and the claims on them."""

from __future__ import annotations

import uuid
from fractions import Fraction
from typing import ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.models import Tenant
from clusters.models import Cluster


class Sharing(models.TextChoices):
    """How a pool cuts a GPU."""

    EXCLUSIVE = "exclusive", _("whole GPUs")
    MIG = "mig", _("MIG instances")
    TIME_SLICING = "time-slicing", _("time-slicing")
    MPS = "mps", _("MPS")
    HAMI = "hami", _("HAMi")
    GPU_MANAGER = "gpu-manager", _("gpu-manager")


ISOLATION = {
    Sharing.EXCLUSIVE: _("dedicated"),
    Sharing.MIG: _("hardware slice"),
    Sharing.TIME_SLICING: _("none"),
    Sharing.MPS: _("soft cap"),
    Sharing.HAMI: _("soft cap"),
    Sharing.GPU_MANAGER: _("soft cap"),
}


class Pool(models.Model):
    """A set of nodes of one cluster, chosen by labels, with one way of sharing a GPU. Counted in whole units."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(_("slug"), max_length=40, unique=True)
    name = models.CharField(_("name"), max_length=120)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="pools", verbose_name=_("cluster")
    )
    node_labels = models.JSONField(
        _("node labels"),
        default=dict,
        blank=True,
        help_text=_("A node belongs to the pool when it has all of these."),
    )
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
    gpu_product = models.CharField(_("GPU"), max_length=120, blank=True)
    gpu_memory_mib = models.PositiveIntegerField(_("memory of a GPU (MiB)"), null=True, blank=True)
    unit_memory_mib = models.PositiveIntegerField(_("memory of a unit (MiB)"), null=True, blank=True)
    compute_capability = models.CharField(_("compute capability"), max_length=8, blank=True)
    ecc = models.BooleanField(_("ECC"), null=True, blank=True)
    tolerations = models.JSONField(_("tolerations"), default=list, blank=True)
    runtime_class = models.CharField(_("runtime class"), max_length=253, blank=True)
    # Requests are limits divided by this: how far CPU and memory may be overcommitted.
    cpu_overcommit = models.DecimalField(_("CPU overcommit"), max_digits=5, decimal_places=2, default=1)
    memory_overcommit = models.DecimalField(_("memory overcommit"), max_digits=5, decimal_places=2, default=1)
    is_open = models.BooleanField(
        pgettext_lazy("a pool that is open", "in use"),
        default=True,
        db_default=True,
        help_text=_(
            "Out of use, nothing new starts here; what runs goes on, and what waits goes on waiting."
        ),
    )
    # An admission pass is on its way; set by whoever enqueues it, cleared by the pass before it reads.
    pass_queued_at = models.DateTimeField(null=True, editable=False)

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
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_gpus(self) -> bool:
        return bool(self.resource_name)

    @property
    def isolation(self) -> str:
        return str(ISOLATION[Sharing(self.sharing)])

    def gpus(self, units: int) -> Fraction:
        """Units as GPUs, exactly."""
        return Fraction(units, self.units_per_gpu)


class Flavor(models.Model):
    """A ready-made size."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(_("slug"), max_length=40, unique=True)
    name = models.CharField(_("name"), max_length=120)
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="flavors", verbose_name=_("pool"))
    units = models.PositiveIntegerField(_("units"), default=0, help_text=_("GPUs, instances or replicas."))
    cpu_millicores = models.PositiveIntegerField(_("CPU (millicores)"))
    memory_mib = models.PositiveIntegerField(_("memory (MiB)"))

    class Meta:
        verbose_name = _("flavor")
        verbose_name_plural = _("flavors")
        ordering: ClassVar = ["pool__slug", "units", "cpu_millicores"]

    def __str__(self) -> str:
        return self.name


class Quota(models.Model):
    """What a tenant may use of a pool, in GPUs. No row for a pool with GPUs: none of it."""

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="quotas", verbose_name=_("tenant")
    )
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="quotas", verbose_name=_("pool"))
    nominal_gpus = models.PositiveIntegerField(
        _("own GPUs"), default=0, help_text=_("Whole GPUs that the tenant may use of this pool at once.")
    )
    borrowing_limit_gpus = models.PositiveIntegerField(
        _("may borrow"),
        default=0,
        help_text=_(
            "GPUs beyond its own, while others leave them free. Not yet lent: its own are the limit."
        ),
    )

    class Meta:
        verbose_name = _("quota")
        verbose_name_plural = _("quotas")
        ordering: ClassVar = ["tenant__slug", "pool__slug"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "pool"], name="one_quota_per_tenant_and_pool")
        ]

    def __str__(self) -> str:
        return f"{self.tenant} · {self.pool}"

    def clean(self) -> None:
        if self.borrowing_limit_gpus and not self.nominal_gpus:
            text = _("Who has no GPUs of their own borrows none. Give them at least 1, or let them borrow 0.")
            raise ValidationError({"borrowing_limit_gpus": text})


class TenantLimit(models.Model):
    """What a tenant may use over all pools; empty means no limit."""

    tenant = models.OneToOneField(
        Tenant, on_delete=models.CASCADE, related_name="limit", verbose_name=_("tenant")
    )
    cpu_millicores = models.PositiveIntegerField(
        _("CPU (millicores)"), null=True, blank=True, help_text=_("1000 are one core. Empty: no limit.")
    )
    memory_mib = models.PositiveIntegerField(
        _("memory (MiB)"), null=True, blank=True, help_text=_("1024 are one GiB. Empty: no limit.")
    )
    workspaces = models.PositiveIntegerField(
        _("workspaces at once"), null=True, blank=True, help_text=_("Empty: no limit.")
    )

    class Meta:
        verbose_name = _("limit of a tenant")
        verbose_name_plural = _("limits of tenants")
        ordering: ClassVar = ["tenant__slug"]

    def __str__(self) -> str:
        return str(self.tenant)


class Claim(models.Model):
    """One period of a workspace or job: what it asks of a pool. Admitted, it is a run, and its id is the run's."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        ADMITTED = "admitted", _("admitted")
        RELEASED = "released", _("released")

    class Holder(models.TextChoices):
        WORKSPACE = "workspace", _("workspace")
        JOB = "job", _("job")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="claims", verbose_name=_("pool"))
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="claims", verbose_name=_("tenant")
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="claims", verbose_name=_("user")
    )
    holder_kind = models.CharField(max_length=12, choices=Holder)
    holder_id = models.UUIDField()
    units = models.PositiveIntegerField(_("units"))
    cpu_millicores = models.PositiveIntegerField(
        _("CPU (millicores)"), help_text=_("What the pod requests, after overcommit.")
    )
    memory_mib = models.PositiveIntegerField(
        _("memory (MiB)"), help_text=_("What the pod requests, after overcommit.")
    )
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.WAITING)
    # The queue: higher priority first, then the place; one sent back keeps its old place (front of its priority).
    priority = models.SmallIntegerField(_("priority"), default=0)
    place = models.BigIntegerField()
    attempt = models.PositiveSmallIntegerField(
        _("attempt"), default=0, help_text=_("How often it was sent back to the queue.")
    )
    not_before = models.DateTimeField(null=True)
    reason_code = models.CharField(max_length=64, blank=True, help_text=_("Why it waits, as last decided."))
    reason_data = models.JSONField(default=dict)
    node = models.CharField(_("node"), max_length=253, blank=True, help_text=_("Chosen at admission."))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    admitted_at = models.DateTimeField(_("admitted at"), null=True)
    released_at = models.DateTimeField(_("released at"), null=True)
    # Its pod vanished while it ran: nobody has proven its end, so the units stay held until an admin says so.
    end_unproven_since = models.DateTimeField(_("end unproven since"), null=True)

    class Meta:
        verbose_name = _("claim")
        verbose_name_plural = _("claims")
        indexes: ClassVar = [
            models.Index(fields=["pool", "state", "-priority", "place"], name="claim_queue"),
            models.Index(fields=["tenant", "pool", "state"], name="claim_quota"),
            models.Index(fields=["holder_id"], name="claim_holder"),
            models.Index(fields=["-created_at", "-id"], name="claim_newest"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["holder_kind", "holder_id"],
                condition=~Q(state="released"),
                name="one_live_claim_per_holder",
            ),
            models.CheckConstraint(
                condition=Q(state="released", released_at__isnull=False)
                | (~Q(state="released") & Q(released_at__isnull=True)),
                name="released_at_when_released",
            ),
            models.CheckConstraint(
                condition=~Q(state="admitted") | (Q(admitted_at__isnull=False) & ~Q(node="")),
                name="admitted_to_a_node_at_a_time",
            ),
            models.CheckConstraint(
                condition=~Q(state="waiting") | (Q(admitted_at__isnull=True) & Q(node="")),
                name="waiting_has_no_node",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_holder_kind_display()} {self.holder_id}"
