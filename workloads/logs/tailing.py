"""A log as it grows, for one reader: the last lines, then each that is stored, once and in the order of its log.

A place is kept by log, and lines are read from rows when the reader has room for them. So a slow reader costs no memory
and misses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q

from .models import LogChunk, LogStream
from .reading import COLUMNS, Cursor, Shown, Wanted, last, lines_of, of_holder, page

FIRST_LINES = 500
STREAMS_AT_ONCE = 16
CHUNKS_AT_ONCE = 32


class Tail:
    """Lines of a workspace's or job's logs; `chosen` may name a run, an index, an attempt. Its methods block."""

    def __init__(self, holder_id: UUID, chosen: Mapping[str, Any]) -> None:
        given = {name: value for name, value in chosen.items() if value is not None}
        self._wanted = Wanted(of_holder(holder_id, **given))
        self._streams = LogStream.objects.filter(holder_id=holder_id, **given)
        self._read: dict[int, int] = {}  # number of the last line that was read, by log
        self.is_empty = True

    def first(self, limit: int = FIRST_LINES) -> list[Shown]:
        """Return the last lines, and remember where `more` goes on."""
        self._remember()
        return [line for line in last(self._wanted, limit) if line.number <= self._read.get(line.stream, 0)]

    def after(self, place: Cursor) -> tuple[list[Shown], Cursor | None]:
        """Return the next lines after a place, as far as they were stored at first, and the place to ask for next.

        The place is None once `more` goes on.
        """
        if not self._read:
            self._remember()
        found = page(self._wanted, place, FIRST_LINES)
        lines = [line for line in found.lines if line.number <= self._read.get(line.stream, 0)]
        return lines, found.following

    def _remember(self) -> None:
        self._read = dict(self._streams.values_list("pk", "lines"))
        self.is_empty = not self._read

    def more(self) -> list[Shown]:
        """Return lines that were stored since, by log; none if there is none."""
        behind = [
            (pk, lines)
            for pk, lines in self._streams.order_by("pk").values_list("pk", "lines")
            if lines > self._read.get(pk, 0)
        ][:STREAMS_AT_ONCE]
        self.is_empty = self.is_empty and not behind
        if not behind:
            return []
        which = Q()
        for pk, _ in behind:
            which |= Q(stream=pk, last_line__gt=self._read.get(pk, 0))
        chunks = LogChunk.objects.filter(which).select_related("stream").only(*COLUMNS)
        found = [
            line
            for chunk in chunks.order_by("first_at", "stream_id", "first_line")[:CHUNKS_AT_ONCE]
            for line in lines_of(chunk)
            if line.number > self._read.get(line.stream, 0)
        ]
        if not found:  # retention was faster than this reader
            self._read |= dict(behind)
        for line in found:
            self._read[line.stream] = max(self._read.get(line.stream, 0), line.number)
        return found
