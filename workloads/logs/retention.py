"""Retention: chunks expire by days, a tenant's oldest go beyond its size, and the space goes back to the disk."""

from __future__ import annotations

import logging
from datetime import date, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet, Sum
from django.utils import timezone

from accounts.locks import later_if_busy

from . import partitions
from .models import LogChunk, LogLimit, LogStream

log = logging.getLogger(__name__)

MIB = 2**20
# A partition is rewritten when chunks take less than half of it, and it is worth it.
WORTH_BYTES = 16 * MIB
# Rows and indexes take more than the chunks' own bytes.
OVERHEAD = 1.25


def expiry_of(streams: QuerySet[LogStream], now: datetime) -> dict[UUID, date]:
    """Return the day after which chunks that are written now expire, by tenant of these logs."""
    days = dict(streams.order_by().values_list("tenant", "tenant__log_limit__days").distinct())
    return {
        tenant: (now + timedelta(days=settings.LOG_DAYS if own is None else own)).date()
        for tenant, own in days.items()
    }


def keep(now: datetime | None = None) -> None:
    """Delete what is not kept any more. May be called at any time, by one process at a time."""
    now = now or timezone.now()
    sizes = dict(LogLimit.objects.exclude(size_mib=None).values_list("tenant", "size_mib"))
    with later_if_busy("retention of logs"):
        partitions.drop_before(now.date())
        forget_shortened(now)
        for tenant, used in stored_bytes().items():
            forget_oldest(tenant, used, sizes.get(tenant, settings.LOG_MIB) * MIB)
        give_back_space()
    forget_streams(now)


def stored_bytes() -> dict[UUID, int]:
    """Return what the chunks of each tenant take."""
    rows = LogChunk.objects.values_list("tenant_id").annotate(used=Sum("stored_bytes")).order_by()
    return dict(rows)


def forget_shortened(now: datetime) -> None:
    """Delete chunks that are older than their tenant keeps them now: their partition was chosen before."""
    for tenant, days in LogLimit.objects.exclude(days=None).values_list("tenant_id", "days"):
        assert days is not None
        LogChunk.objects.filter(tenant_id=tenant, last_at__lt=now - timedelta(days=days + 1)).delete()


def forget_oldest(tenant: UUID, used: int, most: int) -> None:
    """Delete a tenant's oldest chunks until the others fit `most` bytes."""
    if used <= most:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            DELETE FROM {partitions.TABLE} c USING (
                SELECT expires_on, stream_id, first_line,
                    sum(stored_bytes) OVER (ORDER BY last_at, stream_id, first_line) AS gone
                FROM {partitions.TABLE} WHERE tenant_id = %s
            ) old
            WHERE old.gone - c.stored_bytes < %s AND c.tenant_id = %s AND c.expires_on = old.expires_on
                AND c.stream_id = old.stream_id AND c.first_line = old.first_line
            """,  # noqa: S608 - a name of ours
            [tenant, used - most, tenant],
        )
        log.info(
            "%s chunks of logs deleted: the tenant %s keeps %s MiB", cursor.rowcount, tenant, most // MIB
        )


def give_back_space() -> None:
    """Rewrite partitions that are mostly empty. PostgreSQL itself would only use their space again."""
    for day, size in partitions.there().items():
        if size > WORTH_BYTES and partitions.used_bytes(day) * OVERHEAD < size / 2:
            partitions.rewrite(day)


def forget_streams(now: datetime) -> None:
    """Delete logs that ended and of which nothing is left."""
    left = LogChunk.objects.filter(stream=OuterRef("pk"))
    LogStream.objects.filter(~Exists(left), ended_at__lt=now - timedelta(days=1)).delete()
