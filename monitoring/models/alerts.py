"""Alerts: groups of firings with their members, the routes by which they are sent, and each message on its way."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from accounts.models import Tenant
from clusters.models import Cluster
from quotas.models import Pool


class Severity(models.IntegerChoices):
    INFO = 1, _("info")
    WARNING = 2, _("warning")
    CRITICAL = 3, _("critical")

    @property
    def word(self) -> str:
        """Name in the API."""
        return self.name.lower()


class AlertPass(models.Model):
    """One row: when passes were last enqueued and done, and what they remember."""

    raise_queued_at = models.DateTimeField(null=True)
    raised_at = models.DateTimeField(null=True)
    send_queued_at = models.DateTimeField(null=True)
    # When the certificate of Berth's own address ends.
    site_ends_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return "passes over alerts"


class Alert(models.Model):
    """Group of like firings. `code` and `data` (of the first one) make its sentence."""

    class State(models.TextChoices):
        FIRING = "firing", _("firing")
        ACKNOWLEDGED = "acknowledged", _("acknowledged")
        SILENCED = "silenced", _("silenced")
        RESOLVED = "resolved", _("resolved")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Firings of one group that begin within a short time become one alert (alerts/grouping.py).
    group = models.CharField(max_length=200, db_index=True)
    code = models.CharField(_("code"), max_length=64)
    data = models.JSONField(default=dict)
    severity = models.PositiveSmallIntegerField(_("severity"), choices=Severity)
    cluster = models.ForeignKey(
        Cluster, null=True, on_delete=models.CASCADE, related_name="+", verbose_name=_("cluster")
    )
    tenant = models.ForeignKey(
        Tenant, null=True, on_delete=models.CASCADE, related_name="+", verbose_name=_("tenant")
    )
    pools = models.JSONField(default=list, help_text=_("Ids of the pools that its nodes belong to."))
    state = models.CharField(_("state"), max_length=12, choices=State, default=State.FIRING)
    count = models.PositiveIntegerField(_("members"), default=0)
    open_count = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(_("since"))
    last_at = models.DateTimeField(_("last member"))
    # People are told once in each round. A round begins anew when it fires again after they heard that it was over.
    round = models.PositiveIntegerField(default=1)
    round_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    silenced_until = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    # Set: a person resolved it by hand. It is not opened again by what was firing then.
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    escalated_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        ordering: ClassVar = ["-since", "-id"]
        indexes: ClassVar = [models.Index(fields=["state", "-since", "-id"], name="alerts_by_state")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state="resolved", resolved_at__isnull=False)
                | (~Q(state="resolved") & Q(resolved_at__isnull=True)),
                name="resolved_alert_has_a_time",
            )
        ]

    def __str__(self) -> str:
        return self.code


class AlertMember(models.Model):
    """One firing of an alert: a node, a GPU, a volume, a part of Berth."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="members")
    key = models.CharField(max_length=200)
    code = models.CharField(max_length=64)
    data = models.JSONField(default=dict)
    severity = models.PositiveSmallIntegerField(choices=Severity)
    node = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=512, blank=True)
    link = models.CharField(max_length=240, blank=True)
    since = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["since", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["alert", "key"], name="member_of_an_alert_once"),
            models.UniqueConstraint(
                fields=["key"], condition=Q(ended_at__isnull=True), name="firing_in_one_alert"
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.node or self.code


class AlertRoute(models.Model):
    """Way by which alerts reach somebody. Address and signing secret are encrypted, and never given back."""

    class Way(models.TextChoices):
        ADMINS = "admins", _("mail to all admins")
        MAIL = "mail", _("mail")
        WEBHOOK = "webhook", _("webhook")
        SLACK = "slack", "Slack"
        MATTERMOST = "mattermost", "Mattermost"
        FEISHU = "feishu", "Feishu / Lark"
        DINGTALK = "dingtalk", "DingTalk"
        HEARTBEAT = "heartbeat", _("heartbeat (dead man's switch)")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(_("name"), max_length=80)
    way = models.CharField(_("way"), max_length=12, choices=Way)
    address = models.TextField(blank=True, editable=False)
    secret = models.TextField(blank=True, editable=False)
    # What people may know of the address: its host, or the mail address.
    host = models.CharField(_("where to"), max_length=254, blank=True, editable=False)
    least_severity = models.PositiveSmallIntegerField(
        _("from severity"), choices=Severity, default=Severity.WARNING
    )
    cluster = models.ForeignKey(
        Cluster,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("only of the cluster"),
    )
    pool = models.ForeignKey(
        Pool,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("only of the pool"),
    )
    tenant = models.ForeignKey(
        Tenant,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("only of the tenant"),
    )
    escalates_after_minutes = models.PositiveSmallIntegerField(
        _("only if nobody acknowledged it within"),
        null=True,
        blank=True,
        help_text=_("Minutes. Empty: at once."),
    )
    every_minutes = models.PositiveSmallIntegerField(
        _("heartbeat every"), default=5, help_text=_("Minutes; for heartbeats only.")
    )
    may_reach_inside = models.BooleanField(
        _("may reach Berth's own networks"),
        default=False,
        help_text=_("For a route of a tenant: addresses of this server and of the clusters are not refused."),
    )
    is_enabled = models.BooleanField(_("enabled"), default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)
    last_beat_at = models.DateTimeField(null=True, editable=False)
    beat_tried_at = models.DateTimeField(null=True, editable=False)
    beat_error = models.CharField(max_length=240, blank=True, editable=False)

    class Meta:
        verbose_name = _("alert route")
        verbose_name_plural = _("alert routes")
        ordering: ClassVar = ["-created_at", "-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["way"], condition=Q(way="admins"), name="one_route_to_all_admins")
        ]

    def __str__(self) -> str:
        return self.name


class AlertDelivery(models.Model):
    """What one recipient of a route is told of an alert, once. Several that are due together are one message, with
    one `batch`; its id goes along, so that a receiver can drop what comes twice."""

    class Occasion(models.TextChoices):
        FIRING = "firing", _("firing")
        ESCALATED = "escalated", _("escalated")
        RESOLVED = "resolved", _("resolved")
        TEST = "test", _("test")

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        SENT = "sent", _("sent")
        GIVEN_UP = "given_up", _("given up")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Empty: a test of the route.
    alert = models.ForeignKey(
        Alert, null=True, on_delete=models.CASCADE, related_name="deliveries", verbose_name=_("alert")
    )
    route = models.ForeignKey(
        AlertRoute, on_delete=models.CASCADE, related_name="deliveries", verbose_name=_("route")
    )
    recipient = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("recipient"),
    )
    occasion = models.CharField(_("occasion"), max_length=12, choices=Occasion)
    round = models.PositiveIntegerField(default=1)
    batch = models.UUIDField(_("message"), null=True, db_index=True)
    state = models.CharField(_("state"), max_length=12, choices=State, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    created_at = models.DateTimeField(_("created at"), db_default=Now())
    due_at = models.DateTimeField(_("next attempt"), null=True)
    status_code = models.PositiveSmallIntegerField(_("answer"), null=True)
    error = models.CharField(_("last error"), max_length=240, blank=True)
    sent_at = models.DateTimeField(_("sent at"), null=True)

    class Meta:
        verbose_name = _("delivery of an alert")
        verbose_name_plural = _("deliveries of alerts")
        ordering: ClassVar = ["-created_at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["due_at"], condition=Q(state="waiting"), name="alert_outbox"),
            models.Index(fields=["route", "recipient", "-sent_at"], name="alert_deliveries_of_a_route"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["alert", "occasion", "round", "route", "recipient"],
                condition=Q(alert__isnull=False),
                nulls_distinct=False,
                name="one_delivery_of_an_occasion",
            ),
            models.CheckConstraint(
                condition=Q(state="waiting", due_at__isnull=False)
                | (~Q(state="waiting") & Q(due_at__isnull=True)),
                name="alert_that_waits_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)
