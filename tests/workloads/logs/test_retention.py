"""Retention: what expires goes, by days and by size, and the disk gets its space back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from devcluster.testing.waiting import until
from tests.cast import Cast
from tests.shared.log_rows import NOON_NS, make_stream, stored, write
from workloads.logs import partitions, retention
from workloads.logs.intake import SECOND
from workloads.logs.models import LogChunk, LogLimit, LogStream

MIB = 2**20


@pytest.fixture
def _no_partition_stays() -> Iterator[None]:
    """Partitions are made outside of the rows that a test leaves behind."""
    yield
    partitions.drop_before(date.max)


def fill(stream: LogStream, mib: int) -> None:
    """Write so much that does not compress."""
    noise = random.Random(7)
    for number in range(mib * 20):
        texts = [noise.randbytes(500).hex() for _ in range(60)]
        write(stream, texts, at_ns=NOON_NS + number * 60 * SECOND)


def kept_until(done: Callable[[], bool], now: datetime | None = None) -> None:
    """Look after logs until it holds: while PostgreSQL analyzes a table, no space of it can be given back."""

    def keep() -> bool:
        retention.keep(now)
        return done()

    until(keep)


@pytest.mark.django_db
def test_each_tenant_keeps_its_own_days(cast: Cast, settings: Any) -> None:
    settings.LOG_DAYS = 30
    LogLimit.objects.create(tenant=cast.second, days=3)
    for tenant in (cast.demo, cast.second):
        write(make_stream(tenant), ["x"])
    today = timezone.now().date()
    expiries = dict(LogChunk.objects.values_list("tenant_id", "expires_on"))
    assert expiries == {
        cast.demo.pk: today + timedelta(days=30),
        cast.second.pk: today + timedelta(days=3),
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_no_partition_stays")
@pytest.mark.slow
def test_what_expired_leaves_the_disk(cast: Cast) -> None:
    stream, other = make_stream(cast.demo), make_stream(cast.second)
    LogLimit.objects.create(tenant=cast.demo, days=1)
    fill(stream, 2)
    write(other, ["stays"])
    before = sum(partitions.there().values())
    assert before > 2 * MIB
    kept_until(lambda: sum(partitions.there().values()) < MIB / 2, timezone.now() + timedelta(days=3))
    assert stored(other) == ["stays"]
    assert not LogChunk.objects.filter(stream=stream).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_no_partition_stays")
@pytest.mark.slow
def test_beyond_its_size_a_tenant_loses_its_oldest_lines_and_the_disk_gets_their_space(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "WORTH_BYTES", MIB)
    stream, other = make_stream(cast.demo), make_stream(cast.second)
    fill(stream, 6)
    write(other, ["stays"])
    before = sum(partitions.there().values())
    LogLimit.objects.create(tenant=cast.demo, size_mib=1)
    kept_until(lambda: sum(partitions.there().values()) < before / 2)
    assert retention.stored_bytes()[cast.demo.pk] <= MIB
    kept = list(
        LogChunk.objects.filter(stream=stream).order_by("first_line").values_list("last_line", flat=True)
    )
    assert kept[-1] == LogStream.objects.get(pk=stream.pk).lines
    assert stored(other) == ["stays"]
    write(stream, ["goes on"], at_ns=NOON_NS + 10**6 * SECOND)


@pytest.mark.django_db
def test_fewer_days_hold_for_what_was_written_before(cast: Cast) -> None:
    stream = make_stream(cast.demo)
    now_ns = int(timezone.now().timestamp()) * SECOND
    for days in (9, 4, 0):
        LogStream.objects.filter(pk=stream.pk).update(chunk_expires_on=None)
        write(stream, [f"{days} days ago"], at_ns=now_ns - days * 86_400 * SECOND)
    LogLimit.objects.create(tenant=cast.demo, days=5)
    retention.forget_shortened(timezone.now())
    assert [chunk.first_line for chunk in LogChunk.objects.order_by("first_line")] == [2, 3]


@pytest.mark.django_db
def test_logs_of_which_nothing_is_left_are_forgotten_once_they_ended(cast: Cast) -> None:
    long_ago = timezone.now() - timedelta(days=2)
    gone, running, kept = (make_stream(cast.demo) for _ in range(3))
    write(kept, ["x"])
    LogStream.objects.filter(pk__in=(gone.pk, kept.pk)).update(ended_at=long_ago)
    retention.forget_streams(timezone.now())
    assert set(LogStream.objects.values_list("pk", flat=True)) == {running.pk, kept.pk}


@pytest.mark.django_db
def test_a_search_reads_the_filter_where_it_is(cast: Cast) -> None:
    """The filter stays in the row, uncompressed; lines go to the side table."""
    write(make_stream(cast.demo), ["x"])
    [day] = partitions.there()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname, attstorage::text FROM pg_attribute WHERE attrelid = %s::regclass"
            " AND attname IN ('grams', 'lines')",
            [partitions.name_of(day)],
        )
        assert dict(cursor.fetchall()) == {"grams": "p", "lines": "e"}


@pytest.mark.django_db
def test_a_fault_of_the_database_is_not_taken_for_a_busy_table(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(day: date) -> None:
        raise OperationalError("no space left on device")

    monkeypatch.setattr(partitions, "drop_before", fails)
    with pytest.raises(OperationalError):
        retention.keep()
