"""Retention: chunks expire by days, a tenant's oldest go beyond its size, and the space goes back to the disk."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import date, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import OperationalError, connection
from django.db.models import Exists, OuterRef, Sum
from django.utils import timezone

from . import partitions
from .models import LogChunk, LogLimit, LogStream

log = logging.getLogger(__name__)

MIB = 2**20
# A partition is rewritten when chunks take less than half of it, and it is worth it.
WORTH_BYTES = 16 * MIB
# Rows and indexes take more than the chunks' own bytes.
OVERHEAD = 1.25


def expiry_of(tenants: Collection[UUID], now: datetime) -> dict[UUID, date]:
    """Return the day after which chunks that are written now expire, by tenant."""
    days = dict(LogLimit.objects.filter(tenant__in=tenants).values_list("tenant_id", "days"))
    return {tenant: (now + timedelta(days=_days(days.get(tenant)))).date() for tenant in tenants}


def _days(own: int | None) -> int:
    return settings.LOG_DAYS if own is None else own


def keep(now: datetime | None = None) -> None:
    """Delete what is not kept any more. May be called at any time, by one process at a time."""
    now = now or timezone.now()
    try:
        partitions.drop_before(now.date())
        forget_shortened(now)
        for tenant, used in stored_bytes().items():
            forget_oldest(tenant, used)
        give_back_space()
    except OperationalError as error:  # somebody reads a partition: the next call tries again
        log.info("logs are busy, their retention is looked after later: %s", error)
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


def forget_oldest(tenant: UUID, used: int) -> None:
    """Delete a tenant's oldest chunks until the others fit its size."""
    own = LogLimit.objects.filter(tenant=tenant).values_list("size_mib", flat=True).first()
    most = (settings.LOG_MIB if own is None else own) * MIB
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
    rows = LogChunk.objects.values_list("expires_on").annotate(used=Sum("stored_bytes")).order_by()
    used = dict(rows)
    for day, size in partitions.there().items():
        if size > WORTH_BYTES and used.get(day, 0) * OVERHEAD < size / 2:
            partitions.rewrite(day)


def forget_streams(now: datetime) -> None:
    """Delete logs that ended and of which nothing is left."""
    left = LogChunk.objects.filter(stream=OuterRef("pk"))
    LogStream.objects.filter(~Exists(left), ended_at__lt=now - timedelta(days=1)).delete()
