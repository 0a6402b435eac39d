"""Claims: one row per period of a workspace or job; and the ledger of how long each was held."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import CombinedExpression
from django.utils.translation import gettext_lazy as _

from accounts.models import Tenant

from .bookings import Booking
from .pools import Pool

# Most members of one claim.
MOST_MEMBERS = 512


def of_all_members(amount: str) -> CombinedExpression:
    """Return the expression for an amount of all members of a claim: the columns have that of one member."""
    return F(amount) * F("members")


class Claim(models.Model):
    """Request of a workspace or job to a pool, for one period. Once admitted it is a run, with the same id.

    It asks for one or several equal members, one pod each, which are placed all at once or not at all. The columns of
    amounts (units, cards, CPU, memory) are those of one member.
    """

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
    # Which part of a job it is for; a workspace has one.
    part = models.PositiveIntegerField(default=0, db_default=0)
    members = models.PositiveIntegerField(_("nodes"), default=1, db_default=1)
    units = models.PositiveIntegerField(_("units"))
    cpu_millicores = models.PositiveIntegerField(
        _("CPU (millicores)"), help_text=_("What the pod requests, after overcommit.")
    )
    memory_mib = models.PositiveIntegerField(
        _("memory (MiB)"), help_text=_("What the pod requests, after overcommit.")
    )
    # For HAMi, which cuts GPUs by memory and cores: number of GPUs on one node, and the amounts of each.
    cards = models.PositiveSmallIntegerField(default=0, db_default=0)
    card_memory_mib = models.PositiveIntegerField(null=True)
    card_cores = models.PositiveSmallIntegerField(null=True, help_text=_("Percent of a GPU's cores."))
    # Amounts of extended resources beside GPUs that its pod requests, by name, as the pool had it at admission.
    extra = models.JSONField(default=dict, db_default={})
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.WAITING)
    # Queue order: higher priority first, then place. A claim that was sent back keeps its place.
    priority = models.SmallIntegerField(_("priority"), default=0)
    place = models.BigIntegerField()
    attempt = models.PositiveSmallIntegerField(
        _("attempt"), default=0, help_text=_("Number of times it was sent back to the queue.")
    )
    # It was preempted on borrowed GPUs: goes before all others of its priority.
    returns_first = models.BooleanField(default=False, db_default=False)
    not_before = models.DateTimeField(null=True)
    reason_code = models.CharField(max_length=64, blank=True, help_text=_("Why it waits, as last decided."))
    reason_data = models.JSONField(default=dict)
    # Position in the queue as last decided, and the units requested ahead; null: no pass has seen the claim.
    position = models.PositiveIntegerField(null=True)
    units_ahead = models.PositiveIntegerField(null=True)
    # Forecast of the start: in this range eight times of ten. No `estimated_to`: not before `estimated_from`.
    estimated_from = models.DateTimeField(null=True)
    estimated_to = models.DateTimeField(null=True)
    # First forecast, which is compared with the actual start.
    told_from = models.DateTimeField(null=True)
    told_to = models.DateTimeField(null=True)
    max_runtime_minutes = models.PositiveIntegerField(
        null=True, help_text=_("The lifetime that it asks for. Empty: it runs until stopped.")
    )
    node = models.CharField(_("node"), max_length=253, blank=True, help_text=_("Chosen at admission."))
    # Node chosen for each member, in the order of ranks; a node may have several. `node` is the first.
    nodes = ArrayField(models.CharField(max_length=253), default=list, db_default=[], blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    admitted_at = models.DateTimeField(_("admitted at"), null=True)
    released_at = models.DateTimeField(_("released at"), null=True)
    # Latest end that the room above enforces; null: none is known.
    ends_at = models.DateTimeField(_("ends at"), null=True)
    # When its holder expects it to end. Forecasts of the queue use it; no promise rests on it.
    expected_end_at = models.DateTimeField(null=True)
    # Admitted only because it ends before others need its place: its end never moves past this.
    must_end_at = models.DateTimeField(null=True)
    booking = models.ForeignKey(
        Booking, null=True, on_delete=models.PROTECT, related_name="claims", db_index=False
    )
    # Preemption: until when it may run, why, and for which claim or booking (id).
    reclaim_at = models.DateTimeField(null=True)
    reclaim_code = models.CharField(max_length=64, blank=True, default="", db_default="")
    reclaim_for = models.UUIDField(null=True)
    # Time up to which the ledger covers the claim.
    settled_until = models.DateTimeField(null=True)
    # Its budget is spent: it may run until then.
    budget_ends_at = models.DateTimeField(null=True)
    # Its pod vanished while it ran, so its end is not proven: the units stay held until an admin confirms the end.
    end_unproven_since = models.DateTimeField(_("end unproven since"), null=True)

    class Meta:
        verbose_name = _("claim")
        verbose_name_plural = _("claims")
        indexes: ClassVar = [
            models.Index(fields=["pool", "state", "-priority", "place"], name="claim_queue"),
            models.Index(fields=["tenant", "pool", "state"], name="claim_quota"),
            models.Index(fields=["holder_id"], name="claim_holder"),
            models.Index(fields=["-created_at", "-id"], name="claim_newest"),
            models.Index(
                fields=["reclaim_at"],
                condition=Q(state="admitted", reclaim_at__isnull=False),
                name="claim_asked_back",
            ),
            models.Index(
                fields=["released_at"],
                condition=Q(state="released", settled_until__isnull=True, admitted_at__isnull=False),
                name="claim_unsettled",
            ),
            models.Index(
                fields=["pool", "-released_at"],
                condition=Q(state="released", admitted_at__isnull=False),
                name="claim_lengths",
            ),
            models.Index(
                fields=["released_at"], condition=Q(admitted_at__isnull=False), name="claim_runs_by_end"
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["holder_kind", "holder_id", "part"],
                condition=~Q(state="released"),
                name="one_live_claim_per_part_of_a_holder",
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
            models.CheckConstraint(condition=Q(members__gte=1), name="claim_has_a_member"),
            # All or none: a claim knows a node for each member, or for none.
            models.CheckConstraint(
                condition=~Q(state="admitted") | Q(nodes__len=F("members"), nodes__0=F("node")),
                name="admitted_with_all_members",
            ),
            models.CheckConstraint(
                condition=Q(reclaim_at__isnull=True) | ~Q(state="waiting"), name="waiting_is_not_reclaimed"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_holder_kind_display()} {self.holder_id}"

    @property
    def all_units(self) -> int:
        """Units of all members together: what quotas, limits and the ledger count."""
        return self.units * self.members


class LedgerEntry(models.Model):
    """Time for which a claim was admitted on one day (UTC), at the size and weight of then. No second counts twice."""

    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, related_name="ledger")
    day = models.DateField(_("day"))
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", verbose_name=_("tenant"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", verbose_name=_("user")
    )
    microseconds = models.PositiveBigIntegerField(default=0)
    units = models.PositiveIntegerField(_("units"))
    units_per_gpu = models.PositiveIntegerField()
    weight = models.DecimalField(_("weight"), max_digits=6, decimal_places=2, default=Decimal(1))

    class Meta:
        verbose_name = _("entry of the ledger")
        verbose_name_plural = _("ledger")
        ordering: ClassVar = ["-day", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["day", "tenant"], name="ledger_day_tenant"),
            models.Index(fields=["pool", "day"], name="ledger_pool_day"),
            models.Index(fields=["tenant", "user", "day"], name="ledger_person_day"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["claim", "day"], name="one_entry_per_claim_and_day")
        ]

    def __str__(self) -> str:
        return f"{self.claim_id} · {self.day}"
