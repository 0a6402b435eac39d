"""Reports about nodes: agents and their tokens, the driver's errors, failed starts, and the resulting troubles.

The GPUs themselves are `clusters.models.Gpu`: the queue and the map, in lower rooms, read them too.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from clusters.models import Cluster


class AgentToken(models.Model):
    """Token of one cluster's agents: found by its prefix, checked by its digest, shown once."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="agent_tokens", verbose_name=_("cluster")
    )
    name = models.CharField(_("name"), max_length=80)
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used at"), null=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, editable=False)

    class Meta:
        verbose_name = _("token of agents")
        verbose_name_plural = _("tokens of agents")
        ordering: ClassVar = ["cluster", "-created_at"]

    def __str__(self) -> str:
        return self.name


class AgentState(models.Model):
    """Last reporting agent of a node, and the state of the node's driver."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="agents")
    node = models.CharField(max_length=253)
    # Process of the agent. It numbers its reports: a report whose number is not higher came before.
    agent = models.CharField(max_length=64)
    sequence = models.PositiveBigIntegerField(default=0)
    taken_at = models.DateTimeField(help_text=_("When the newest report was taken, by the node's clock."))
    seen_at = models.DateTimeField(help_text=_("When it came, by ours."))
    interval_seconds = models.FloatField(default=5, help_text=_("Between its last two reports."))
    dropped = models.PositiveIntegerField(default=0)
    driver_version = models.CharField(max_length=40, blank=True)
    cuda_version = models.CharField(max_length=40, blank=True)
    # Codes and details as the agent sends them.
    troubles = models.JSONField(default=list)
    counts_oom_kills = models.BooleanField(
        default=False, db_default=False, help_text=_("It sees the memory limits of the node's pods.")
    )
    is_simulated = models.BooleanField(
        default=False, help_text=_("Of a trial's cluster that plays its GPUs.")
    )

    class Meta:
        ordering: ClassVar = ["node"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "node"], name="one_agent_per_node")
        ]

    def __str__(self) -> str:
        return self.node


class XidEvent(models.Model):
    """Error that the driver reported. Empty `gpu`: the driver did not name the GPU."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    node = models.CharField(max_length=253)
    gpu = models.CharField(max_length=96, blank=True)
    xid = models.PositiveIntegerField()
    at = models.DateTimeField()
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-at", "-pk"]
        indexes: ClassVar = [models.Index(fields=["cluster", "node", "-at"], name="xids_of_a_node")]

    def __str__(self) -> str:
        return f"Xid {self.xid}"


class Trouble(models.Model):
    """Problem in a cluster with its begin and end; one row while it lasts. `code` and `data` make its text."""

    class About(models.TextChoices):
        CLUSTER = "cluster", _("cluster")
        NODE = "node", _("node")
        GPU = "gpu", _("GPU")
        VOLUME = "volume", _("volume")
        ADDRESSES = "addresses", _("addresses")
        PART = "part", _("part of the cluster")
        VERSIONS = "versions", _("versions")
        LOAD = "load", _("load and storage")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="troubles", verbose_name=_("cluster")
    )
    about = models.CharField(_("about"), max_length=12, choices=About)
    # Name of the node, UUID of the GPU, namespace/name of the PVC, or the part; empty: the cluster itself.
    subject = models.CharField(_("subject"), max_length=512, blank=True)
    node = models.CharField(_("node"), max_length=253, blank=True)
    code = models.CharField(_("code"), max_length=64)
    data = models.JSONField(default=dict)
    # Nothing new starts there while it lasts.
    takes_out = models.BooleanField(_("out of use"), default=False)
    since = models.DateTimeField(_("since"))
    ended_at = models.DateTimeField(_("ended at"), null=True)

    class Meta:
        verbose_name = _("trouble")
        verbose_name_plural = _("troubles")
        ordering: ClassVar = ["-since", "id"]
        indexes: ClassVar = [models.Index(fields=["cluster", "node", "ended_at"], name="troubles_of_a_node")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                # By node: a GPU, or a pod with its volume, may move to another node before the first problem has ended.
                fields=["cluster", "node", "about", "subject", "code"],
                condition=Q(ended_at__isnull=True),
                name="one_open_trouble_of_a_node",
            )
        ]

    def __str__(self) -> str:
        return self.code


class Suspicion(models.Model):
    """Problem that was seen and becomes a trouble if it lasts: an update shows many for a moment."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    # About, code and subject of the trouble.
    key = models.CharField(max_length=600)
    since = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "key"], name="one_suspicion_of_a_kind")
        ]

    def __str__(self) -> str:
        return self.key


class NodeLoad(models.Model):
    """Load of a node, or of the storage as a whole (no node), as the cluster's Prometheus last told it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    node = models.CharField(max_length=253, blank=True)
    # By the names in monitoring/parts/load.py.
    figures = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "node"], name="one_load_per_node")
        ]

    def __str__(self) -> str:
        return self.node


class FailedStart(models.Model):
    """Pod that its node recently failed to start, from the cluster's events. Deleted after an hour."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    node = models.CharField(max_length=253)
    namespace = models.CharField(max_length=253)
    pod = models.CharField(max_length=253)
    code = models.CharField(max_length=64)
    text = models.TextField(blank=True)
    # Problem of its storage, not of the node.
    is_volume = models.BooleanField(default=False)
    count = models.PositiveIntegerField(default=1)
    last_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["node", "namespace", "pod"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "node", "namespace", "pod", "code"], name="one_row_per_failed_start"
            )
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}"
