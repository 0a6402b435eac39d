"""Storing of lines: added to a log's last chunk, or to a new one, in one transaction with how far the log is read.

So a line is stored if, and only if, reading goes on after it. `lines` of the log's row is also a fence: a collector
that lost the lead without knowing it cannot store a line again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from accounts.live import publish_to_all
from accounts.locks import locked

from . import partitions, readers, retention
from .chunks import CHUNK_BYTES, FILTER_BITS, Entry, pack, size_of, unpack, with_bits
from .intake import Stored, moment, since_ns
from .models import LogChunk, LogStream
from .readers import Line

# A chunk that is older takes no more lines: what expires together was written within an hour.
LONGEST_CHUNK = timedelta(hours=1)
ROW_BYTES = 200  # of a chunk, besides its lines and its filter
UPSERT = f"""
    INSERT INTO {partitions.TABLE} (expires_on, stream_id, first_line, last_line, tenant_id, holder_id,
        first_at, last_at, text_bytes, stored_bytes, grams, lines)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (expires_on, stream_id, first_line) DO UPDATE SET last_line = excluded.last_line,
        last_at = excluded.last_at, text_bytes = excluded.text_bytes, stored_bytes = excluded.stored_bytes,
        grams = excluded.grams, lines = excluded.lines
"""  # noqa: S608 - a name of ours


@dataclass(frozen=True)
class Batch:
    """New lines of one log. `after`: the number of its last stored line, as the collector knows it."""

    stream: int
    after: int
    entries: Sequence[Entry]
    dropped: int = 0
    dropped_until_ns: int = 0
    has_ended: bool = False


@dataclass(frozen=True)
class Chunk:
    """Chunk that is being filled. Times never go back within a log, whatever the node's clock does."""

    expires_on: date
    first_line: int
    first_at: datetime
    last_at: datetime
    entries: tuple[Entry, ...] = ()
    text_bytes: int = 0
    grams: bytes = b""

    @property
    def last_line(self) -> int:
        return self.first_line + len(self.entries) - 1

    def has_room(self, size: int, at: datetime) -> bool:
        """Return True if a line of this time fits, with which the chunk has `size` bytes."""
        return size <= CHUNK_BYTES and at - self.first_at < LONGEST_CHUNK


def times(entries: Iterable[Entry], not_before: datetime | None) -> list[datetime]:
    """Return the times of lines: each entry's own, or that of the line before where the node's clock went back."""
    found: list[datetime] = []
    for entry in entries:
        at = moment(entry.ns)
        not_before = at if not_before is None or at > not_before else not_before
        found.append(not_before)
    return found


def fill(
    entries: Sequence[Entry],
    at: Sequence[datetime],
    open_chunk: Chunk | None,
    first_line: int,
    expires_on: date,
) -> list[Chunk]:
    """Return the chunks that hold the entries: the open one continued, then new ones."""
    changed: list[Chunk] = []
    chunk, begin = open_chunk, 0
    while begin < len(entries):
        new = size_of(entries[begin].text)
        if chunk is None or not chunk.has_room(chunk.text_bytes + new, at[begin]):
            chunk = Chunk(expires_on, first_line + begin, at[begin], at[begin])
        end, size = begin + 1, chunk.text_bytes + new  # one that is too long is alone
        while end < len(entries) and chunk.has_room(size + (new := size_of(entries[end].text)), at[end]):
            end, size = end + 1, size + new
        added = entries[begin:end]
        chunk = replace(
            chunk,
            entries=(*chunk.entries, *added),
            last_at=at[end - 1],
            text_bytes=size,
            grams=with_bits(chunk.grams, [entry.text for entry in added]),
        )
        changed.append(chunk)
        begin = end
    return changed


def append(batches: Sequence[Batch]) -> set[int]:
    """Store new lines, and tell their readers. Return the logs that another collector has gone on with."""
    if not batches:
        return set()
    by_stream = {batch.stream: batch for batch in batches}
    now = timezone.now()
    expiry = retention.expiry_of(LogStream.objects.filter(pk__in=by_stream), now)
    partitions.make(set(expiry.values()))
    stale: set[int] = set()
    with transaction.atomic():
        streams = {row.pk: row for row in locked(LogStream.objects.filter(pk__in=by_stream))}
        chunks = _open_chunks(streams.values())
        told: list[Line] = []
        rows: list[list[Any]] = []
        groups: set[str] = set()
        for pk, batch in by_stream.items():
            stream = streams.get(pk)
            if stream is None or stream.lines != batch.after or stream.ended_at is not None:
                stale.add(pk)
                continue
            at = times(batch.entries, stream.last_at)
            changed = fill(batch.entries, at, chunks.get(pk), stream.lines + 1, expiry[stream.tenant_id])
            rows += [_row(stream, chunk) for chunk in changed]
            told += _lines(stream, batch.entries, at)
            groups |= {group_of(stream.holder_id)} if batch.entries or batch.has_ended else set()
            _note(stream, batch, at, changed, now)
        with connection.cursor() as cursor:
            cursor.executemany(UPSERT, rows)
        LogStream.objects.bulk_update(
            [row for pk, row in streams.items() if pk not in stale],
            ["lines", "dropped", "dropped_until_ns", "last_ns", "last_at", "chunk_expires_on",
             "chunk_first_line", "ended_at"],
        )  # fmt: skip
        readers.tell(told)
        publish_to_all(sorted(groups), {"type": "log.grew"})
    return stale


def group_of(holder_id: UUID) -> str:
    """Name of the group of sockets that are woken when a log of this holder grew."""
    return f"log.{holder_id}"


def stored_of(stream: LogStream) -> Stored:
    """Return the lines of a log that the server sends again when reading goes on."""
    if not stream.last_ns:
        return Stored((), 0, stream.dropped_until_ns)
    since = since_ns(stream.last_ns)
    recent = LogChunk.objects.filter(stream=stream, last_at__gte=moment(since)).values_list(
        "lines", flat=True
    )
    entries = (entry for data in recent for entry in unpack(bytes(data)))
    return Stored(entries, stream.last_ns, stream.dropped_until_ns)


def _open_chunks(streams: Iterable[LogStream]) -> Mapping[int, Chunk]:
    """Return the last chunk of each log, in one query for all. It may be gone: retention asks nobody."""
    keys = {row.pk: (row.chunk_expires_on, row.chunk_first_line) for row in streams if row.chunk_expires_on}
    if not keys:
        return {}
    expiries = {expires_on for expires_on, _ in keys.values()}
    first_lines = {first_line for _, first_line in keys.values()}
    found = LogChunk.objects.filter(
        expires_on__in=expiries, stream_id__in=keys, first_line__in=first_lines
    ).iterator()
    return {
        row.stream_id: Chunk(
            expires_on=row.expires_on,
            first_line=row.first_line,
            first_at=row.first_at,
            last_at=row.last_at,
            entries=tuple(unpack(bytes(row.lines))),
            text_bytes=row.text_bytes,
            grams=bytes(row.grams),
        )
        for row in found
        if keys[row.stream_id] == (row.expires_on, row.first_line)
    }


def _row(stream: LogStream, chunk: Chunk) -> list[Any]:
    data = pack(chunk.entries)
    stored_bytes = len(data) + FILTER_BITS // 8 + ROW_BYTES
    return [
        chunk.expires_on, stream.pk, chunk.first_line, chunk.last_line, stream.tenant_id, stream.holder_id,
        chunk.first_at, chunk.last_at, chunk.text_bytes, stored_bytes, chunk.grams, data,
    ]  # fmt: skip


def _note(
    stream: LogStream, batch: Batch, at: Sequence[datetime], changed: Sequence[Chunk], now: datetime
) -> None:
    stream.lines += len(batch.entries)
    stream.dropped += batch.dropped
    stream.dropped_until_ns = max(stream.dropped_until_ns, batch.dropped_until_ns)
    stream.last_ns = max([stream.last_ns, *(entry.ns for entry in batch.entries)])
    if at:
        stream.last_at = at[-1]
    if changed:
        stream.chunk_expires_on, stream.chunk_first_line = changed[-1].expires_on, changed[-1].first_line
    if batch.has_ended:
        stream.ended_at = now


def _lines(stream: LogStream, entries: Sequence[Entry], at: Sequence[datetime]) -> list[Line]:
    return [
        Line(
            stream.holder_kind,
            stream.holder_id,
            stream.run,
            stream.index,
            stream.attempt,
            moment_,
            entry.text,
        )
        for entry, moment_ in zip(entries, at, strict=True)
    ]
