"""Millions of stored lines, and how long searches over them take. Runs in a process with Django (`parts.call`)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db import connection
from django.db.models import Q

from tests.cast import make_cast
from tests.shared.log_rows import make_stream
from workloads.logs import partitions
from workloads.logs.chunks import Entry, pack, with_bits
from workloads.logs.intake import SECOND, moment
from workloads.logs.models import LogStream
from workloads.logs.reading import Wanted, of_holder, page
from workloads.logs.store import ROW_BYTES, UPSERT

LINES_OF_CHUNK = 620
STREAMS = 500
DAYS = 20
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
RARE = ("CUDA out of memory", "NCCL WARN Call to ibv_modify_qp failed", "Segmentation fault (core dumped)")


def fill(lines: int) -> list[str]:
    """Store so many lines of one tenant, of many jobs and days. Return the tenant's id and a job's."""
    cast = make_cast()
    streams = [make_stream(cast.demo, uuid4(), index=number) for number in range(STREAMS)]
    days = [date(2026, 12, 1) + timedelta(days=day) for day in range(DAYS)]
    partitions.make(days)
    noise = random.Random(5)
    chunks = _chunks(lines, streams, days, noise)
    with connection.cursor() as cursor:
        while rows := [row for row, _ in zip(chunks, range(200), strict=False)]:
            cursor.executemany(UPSERT, rows)
        cursor.execute("VACUUM ANALYZE workloads_logchunk")
    return [str(cast.demo.pk), str(streams[0].holder_id)]


def _chunks(
    lines: int, streams: list[LogStream], days: list[date], noise: random.Random
) -> Iterator[list[Any]]:
    numbers = {stream.pk: 0 for stream in streams}
    count = lines // LINES_OF_CHUNK
    for at in range(count):
        stream = streams[at % len(streams)]
        begin = int(BEGIN.timestamp() + DAYS * 86_400 * at / count) * SECOND
        entries = [Entry(begin + n * SECOND // 10, _line(n, noise)) for n in range(LINES_OF_CHUNK)]
        first = numbers[stream.pk] + 1
        numbers[stream.pk] += len(entries)
        data = pack(entries)
        grams = with_bits(b"", [entry.text for entry in entries])
        size = sum(len(entry.text) + 1 for entry in entries)
        yield [
            days[at * len(days) // count], stream.pk, first, numbers[stream.pk], stream.tenant_id, stream.holder_id,
            moment(entries[0].ns), moment(entries[-1].ns), size, len(data) + len(grams) + ROW_BYTES, grams, data,
        ]  # fmt: skip


def _line(number: int, noise: random.Random) -> str:
    if noise.random() < 1e-5:
        return f"rank {noise.randrange(64)}: {noise.choice(RARE)} at {noise.getrandbits(48):x}"
    kind = noise.randrange(10)
    if kind < 7:
        return (
            f"epoch {number // 100} step {noise.randrange(10**6)} loss={noise.random():.4f} lr={noise.random():.2e} "
            f"grad_norm={noise.random() * 9:.3f} throughput={noise.randrange(900, 1200)} img/s"
        )
    if kind < 9:
        shard, took = noise.randrange(4096), noise.randrange(999)
        return f"[{noise.getrandbits(32):08x}] INFO trainer.data: shard {shard} loaded in {took} ms"
    return f"WARNING checkpoint of step {noise.randrange(10**6)} took {noise.random() * 60:.1f} s"


def searches(tenant: str, job: str, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each search, in many rounds."""
    all_of, job_of = Q(tenant_id=tenant), of_holder(job)  # type: ignore[arg-type]
    week = BEGIN + timedelta(days=7)
    kinds: dict[str, Callable[[int], Wanted]] = {
        "a tenant: a frequent word": lambda n: Wanted(all_of, "checkpoint", newest_first=True),
        "a tenant: a rare message": lambda n: Wanted(all_of, RARE[n % len(RARE)], newest_first=True),
        "a tenant: a number that is nowhere": lambda n: Wanted(all_of, f"step 99{n}123456", newest_first=True),
        "a tenant: words that are nowhere": lambda n: Wanted(all_of, f"connection refused {n}", newest_first=True),
        "a tenant: a rare message in a week": lambda n: Wanted(all_of, RARE[n % len(RARE)], since=week,
                                                               until=week + timedelta(days=7), newest_first=True),
        "a job: a rare message": lambda n: Wanted(job_of, RARE[n % len(RARE)]),
        "a job: its newest lines": lambda n: Wanted(job_of, newest_first=True),
    }  # fmt: skip
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind, wanted in kinds.items():
            began = time.perf_counter()
            page(wanted(number), None, 200)
            found[kind].append(time.perf_counter() - began)
    return found


def size_mib() -> float:
    return sum(partitions.there().values()) / 2**20
