"""Tables of logs: the containers that are followed, chunks of their lines, and how long a tenant keeps them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Tenant


class LogStream(models.Model):
    """Log of one container of one pod: whose it is, and how far it is stored."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    holder_kind = models.CharField(max_length=10)
    holder_id = models.UUIDField()
    run = models.UUIDField()
    index = models.PositiveIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0)
    namespace = models.CharField(max_length=63)
    pod = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=64)
    container = models.CharField(max_length=63)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, help_text=_("When its last line was read."))

    lines = models.BigIntegerField(default=0, help_text=_("Lines that were stored, numbered from 1."))
    dropped = models.BigIntegerField(default=0, help_text=_("Lines beyond the pace of one container."))
    last_at = models.DateTimeField(null=True)
    # By the node's clock, in nanoseconds since 1970: where reading goes on, and up to where lines were dropped.
    last_ns = models.BigIntegerField(default=0)
    dropped_until_ns = models.BigIntegerField(default=0)
    # Key of the chunk that takes the next lines, with the stream itself.
    chunk_expires_on = models.DateField(null=True)
    chunk_first_line = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("log of a container")
        verbose_name_plural = _("logs of containers")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["pod_uid", "container"], name="one_log_per_container")
        ]
        indexes: ClassVar = [
            models.Index(fields=["holder_id", "index", "attempt"], name="log_of_holder"),
            models.Index(fields=["tenant", "created_at"], name="log_of_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}"


class LogChunk(models.Model):
    """Consecutive lines of one log, compressed. The table has one partition for each day on which chunks expire.

    No foreign key is enforced: attaching and dropping a partition would lock the tables that it names.
    """

    pk = models.CompositePrimaryKey("expires_on", "stream", "first_line")
    expires_on = models.DateField()
    stream = models.ForeignKey(
        LogStream, on_delete=models.DO_NOTHING, related_name="chunks", db_constraint=False, db_index=False
    )
    first_line = models.BigIntegerField()
    last_line = models.BigIntegerField()
    tenant_id = models.UUIDField()
    holder_id = models.UUIDField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    text_bytes = models.PositiveIntegerField()
    stored_bytes = models.PositiveIntegerField(help_text=_("What it takes in the table, roughly."))
    grams = models.BinaryField(help_text=_("Bits of the byte sequences in its words: chunks.py."))
    lines = models.BinaryField(help_text=_("Times and texts of its lines: chunks.py."))

    class Meta:
        verbose_name = _("part of a log")
        verbose_name_plural = _("parts of logs")
        indexes: ClassVar = [
            models.Index(fields=["stream", "last_line"], name="chunk_of_log"),
            models.Index(fields=["holder_id", "last_at"], name="chunk_of_holder"),
            models.Index(fields=["tenant_id", "last_at"], name="chunk_of_tenant", include=["stored_bytes"]),
        ]


class LogLimit(models.Model):
    """Limit of days and of size for a tenant's logs; empty means the installation's setting."""

    tenant = models.OneToOneField(
        Tenant, on_delete=models.CASCADE, related_name="log_limit", verbose_name=_("tenant")
    )
    days = models.PositiveSmallIntegerField(
        _("days"),
        null=True,
        blank=True,
        help_text=_(
            "Logs are deleted so many days after they were written. Empty: the installation's setting."
        ),
    )
    size_mib = models.PositiveIntegerField(
        _("size (MiB)"),
        null=True,
        blank=True,
        help_text=_("Compressed. Beyond it the oldest are deleted. Empty: the installation's setting."),
    )

    class Meta:
        verbose_name = _("retention of logs")
        verbose_name_plural = _("retention of logs")

    def __str__(self) -> str:
        return str(self.tenant)
