"""Shares of tenants and people: quotas by pool, limits over all pools, and budgets by month."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Tenant
from clusters.references import valid_prefixes

from .pools import Pool


class Quota(models.Model):
    """GPUs that a tenant may use of a pool. No row: none of the pool's GPUs."""

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
        help_text=_("GPUs beyond its own, while others do not use them. They are reclaimed with a warning."),
    )
    weight = models.PositiveIntegerField(
        _("weight"),
        default=1,
        db_default=1,
        help_text=_("Its weight when several tenants wait: 2 gets twice as much as 1 over time."),
    )

    class Meta:
        verbose_name = _("quota")
        verbose_name_plural = _("quotas")
        ordering: ClassVar = ["tenant__slug", "pool__slug"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "pool"], name="one_quota_per_tenant_and_pool"),
            models.CheckConstraint(condition=Q(weight__gte=1), name="quota_weight_at_least_1"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant} · {self.pool}"

    @property
    def limit_gpus(self) -> int:
        """Own GPUs plus those that it may borrow."""
        return self.nominal_gpus + self.borrowing_limit_gpus

    def clean(self) -> None:
        if self.borrowing_limit_gpus and not self.nominal_gpus:
            text = _("A tenant without own GPUs cannot borrow. Give it at least 1, or set borrowing to 0.")
            raise ValidationError({"borrowing_limit_gpus": text})


class TenantLimit(models.Model):
    """Limits of a tenant over all pools; empty means no limit."""

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
    storage_mib = models.PositiveBigIntegerField(
        _("storage (MiB)"), null=True, blank=True, help_text=_("All volumes together. Empty: no limit.")
    )
    homes_mib = models.PositiveBigIntegerField(
        _("homes (MiB)"), null=True, blank=True, help_text=_("All homes together. Empty: no limit.")
    )
    disks_mib = models.PositiveBigIntegerField(
        _("local disks (MiB)"),
        null=True,
        blank=True,
        help_text=_("All local disks together. Empty: no limit."),
    )
    datasets_mib = models.PositiveBigIntegerField(
        _("datasets (MiB)"),
        null=True,
        blank=True,
        help_text=_("All datasets together, with their mounted versions. Empty: no limit."),
    )
    longest_runtime_minutes = models.PositiveIntegerField(
        _("longest runtime (minutes)"),
        null=True,
        blank=True,
        help_text=_("Longest time of a run without an extension. Empty: no limit."),
    )
    person_gpus = models.PositiveIntegerField(
        _("GPUs of one person"), null=True, blank=True, help_text=_("Over all pools. Empty: no limit.")
    )
    person_workspaces = models.PositiveIntegerField(
        _("workspaces of one person at once"), null=True, blank=True, help_text=_("Empty: no limit.")
    )
    person_storage_mib = models.PositiveBigIntegerField(
        _("storage of one person (MiB)"),
        null=True,
        blank=True,
        help_text=_("All volumes that one person has in the tenant. Empty: no limit."),
    )
    image_prefixes = models.TextField(
        _("registries of own images"),
        blank=True,
        default="",
        db_default="",
        validators=[valid_prefixes],
        help_text=_(
            "People may run images from here, by reference. One host, or host and path, per line: "
            "registry.example/team/ allows all under that path. Images without a host are docker.io/library/. Empty: "
            "only images of the catalogue."
        ),
    )

    class Meta:
        verbose_name = _("limit of a tenant")
        verbose_name_plural = _("limits of tenants")
        ordering: ClassVar = ["tenant__slug"]

    def __str__(self) -> str:
        return str(self.tenant)

    @classmethod
    def of(cls, tenant: Tenant) -> TenantLimit | None:
        """Return the tenant's limits; None if it has none. Read once for each instance of the tenant."""
        limit: TenantLimit | None = getattr(tenant, "limit", None)
        return limit


class Budget(models.Model):
    """GPU-hours of a calendar month (UTC) of a tenant, or of one person in it; weighted by the pools' weights."""

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="budgets", verbose_name=_("tenant")
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("person"),
        help_text=_("Empty: the tenant as a whole."),
    )
    gpu_hours = models.DecimalField(_("GPU-hours a month"), max_digits=10, decimal_places=2)
    grace_minutes = models.PositiveIntegerField(
        _("grace (minutes)"),
        default=60,
        help_text=_("How long workspaces keep running after the budget is used up. Files stay."),
    )

    class Meta:
        verbose_name = _("budget")
        verbose_name_plural = _("budgets")
        ordering: ClassVar = ["tenant__slug", "user__username"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "user"], nulls_distinct=False, name="one_budget_per_tenant_and_person"
            ),
            models.CheckConstraint(condition=Q(gpu_hours__gte=0), name="budget_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant} · {self.user}" if self.user else str(self.tenant)


class BudgetMonth(models.Model):
    """State of a budget in one month: hours added by an admin, last notice, and when it was spent."""

    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="months")
    month = models.DateField(_("month"), help_text=_("Its first day."))
    added_gpu_hours = models.DecimalField(
        _("added GPU-hours"), max_digits=10, decimal_places=2, default=Decimal(0)
    )
    told_percent = models.PositiveSmallIntegerField(
        _("percent told"), default=0, help_text=_("80, 95 or 100: the latest notice sent.")
    )
    spent_at = models.DateTimeField(_("spent at"), null=True)

    class Meta:
        ordering: ClassVar = ["-month"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["budget", "month"], name="one_row_per_budget_and_month")
        ]

    def __str__(self) -> str:
        return f"{self.budget} · {self.month:%Y-%m}"
