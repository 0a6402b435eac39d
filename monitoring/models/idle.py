"""Idle reclaim: who stops idle workspaces after how long, and what was last found inside a run."""

from __future__ import annotations

import uuid
from typing import ClassVar
from zoneinfo import available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Tenant
from clusters.models import Cluster
from quotas.models import Pool

LONGEST_MINUTES = 30 * 24 * 60
SPAN = [MinValueValidator(1), MaxValueValidator(LONGEST_MINUTES)]


def valid_zone(name: str) -> None:
    if name not in available_timezones():
        raise ValidationError(_("There is no such time zone. Use a name such as Europe/Berlin."))


def own_zone() -> str:
    return str(settings.TIME_ZONE)


class IdlePolicy(models.Model):
    """After how long an idle workspace with GPUs is stopped. The most exact policy holds: of a tenant in a pool, of a
    tenant, of a pool, of all."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.CASCADE, related_name="+", verbose_name=_("tenant"),
        help_text=_("Empty: all tenants."),
    )  # fmt: skip
    pool = models.ForeignKey(
        Pool, null=True, blank=True, on_delete=models.CASCADE, related_name="+", verbose_name=_("pool"),
        help_text=_("Empty: all pools."),
    )  # fmt: skip
    is_active = models.BooleanField(
        _("stops"), default=True, help_text=_("Off: nothing is stopped by it, also not by a wider policy.")
    )
    minutes = models.PositiveIntegerField(_("idle minutes"), default=120, validators=SPAN)
    warning_minutes = models.PositiveIntegerField(
        _("warning (minutes)"),
        default=10,
        validators=SPAN,
        help_text=_("Its owner is notified so long before."),
    )
    gpu_percent = models.FloatField(
        _("GPU use (%)"), default=5, validators=[MinValueValidator(0), MaxValueValidator(100)],
        help_text=_("More than that in any minute counts as busy."),
    )  # fmt: skip
    cpu_cores = models.FloatField(
        _("CPU use (cores)"), default=0.25, validators=[MinValueValidator(0), MaxValueValidator(1024)],
        help_text=_("More than that in any minute counts as busy."),
    )  # fmt: skip
    night_minutes = models.PositiveIntegerField(
        _("idle minutes at night"), null=True, blank=True, validators=SPAN, help_text=_("Empty: as by day.")
    )
    night_from = models.TimeField(_("night from"), null=True, blank=True)
    night_until = models.TimeField(_("night until"), null=True, blank=True)
    time_zone = models.CharField(_("time zone"), max_length=64, default=own_zone, validators=[valid_zone])
    waiting_minutes = models.PositiveIntegerField(
        _("idle minutes while others wait"), null=True, blank=True, validators=SPAN,
        help_text=_("For GPUs of the same pool. Empty: no difference."),
    )  # fmt: skip

    class Meta:
        verbose_name = _("idle policy")
        verbose_name_plural = _("idle policies")
        ordering: ClassVar = ["tenant__slug", "pool__slug", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "pool"], name="one_idle_policy_of_tenant_and_pool", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(night_minutes__isnull=True)
                | Q(night_from__isnull=False, night_until__isnull=False),
                name="idle_night_has_its_hours",
                violation_error_message=_("Give the hours of the night as well."),
            ),
        ]

    def __str__(self) -> str:
        tenant = self.tenant.slug if self.tenant else _("all tenants")
        return f"{tenant} · {self.pool.slug if self.pool else _('all pools')}"


class IdleLook(models.Model):
    """What looks found inside a run: its answers are asked for only while its figures are quiet."""

    run = models.UUIDField(primary_key=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    # Since then its GPUs and CPU were quiet without a gap; null: they are not, or it is not known.
    figures_since = models.DateTimeField(null=True)
    asked_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    # The last answer, as inside.Inside; and since when each answer said that nothing runs.
    answer = models.JSONField(null=True)
    quiet_since = models.DateTimeField(null=True)
    kept_at = models.DateTimeField(null=True, help_text=_("Its newest keep-alive from inside."))

    class Meta:
        indexes: ClassVar = [models.Index(fields=["cluster", "asked_at"], name="idle_looks_of_a_cluster")]

    def __str__(self) -> str:
        return str(self.run)
