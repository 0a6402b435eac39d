"""Reading of stored lines: page by page in order of time, searched, from the oldest or the newest.

Lines of several logs are merged by time. Chunks come in the order of their first line (newest first: of their last), so
that a line may be shown once no later chunk can have an earlier one. One request reads a limited number of chunks,
unless more of them are of one time. It may show fewer lines than it was asked for, or none, and still say where the
next one goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from django.db.models import F, Func, IntegerField, Q, Value

from .chunks import bits_of, folded, holds, unpack
from .models import LogChunk

MOST_CHUNKS = 600
FIRST_CHUNKS, NEXT_CHUNKS = 16, 96
MOST_BITS = 48
FARTHEST = 2**62
LATEST = 10**17  # microseconds, in the year 5138
MICROSECONDS = 10**6
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = (
    "expires_on", "first_line", "first_at", "last_at", "lines", "stream__holder_kind",
    "stream__holder_id", "stream__run", "stream__index", "stream__attempt",
)  # fmt: skip


Key = tuple[int, int, int]


class Cursor(NamedTuple):
    """Place of a line: microseconds since 1970, its log, its number there."""

    us: int
    stream: int
    number: int

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Return the cursor in the text; raises ValueError if it holds none."""
        us, stream, number = (int(part) for part in text.split(".") if part.isascii() and part.isdecimal())
        if us > LATEST or max(stream, number) > FARTHEST:
            raise ValueError(text)
        return cls(us, stream, number)

    @classmethod
    def of(cls, text: str) -> Cursor | None:
        """Return the cursor in the text; None if it holds none."""
        try:
            return cls.parse(text)
        except ValueError:
            return None


class Shown(NamedTuple):
    """Stored line with whose it is."""

    at: datetime
    text: str
    number: int
    stream: int
    holder_kind: str
    holder_id: UUID
    run: UUID
    index: int  # type: ignore[assignment]  # hides a method of tuples
    attempt: int

    @property
    def cursor(self) -> Cursor:
        return Cursor(microseconds(self.at), self.stream, self.number)


@dataclass(frozen=True)
class Wanted:
    """Lines to read. `which`: a condition on chunks, such as their tenant or holder."""

    which: Q
    search: str = ""
    since: datetime | None = None
    until: datetime | None = None
    newest_first: bool = False


@dataclass(frozen=True)
class Order:
    """Order of lines by time: the oldest first with the sign 1, the newest with -1."""

    sign: int

    def key(self, cursor: Cursor) -> Key:
        return self.sign * cursor.us, self.sign * cursor.stream, self.sign * cursor.number

    def begin(self, bound: int) -> Cursor:
        """Return the place before all lines with this key of their time."""
        return Cursor(bound, 0, 0) if self.sign > 0 else Cursor(-bound, FARTHEST, FARTHEST)


@dataclass(frozen=True)
class Page:
    lines: list[Shown]
    following: Cursor | None  # None: there is no more


def microseconds(at: datetime) -> int:
    return int(at.timestamp()) * MICROSECONDS + at.microsecond


def of_holder(
    holder_id: UUID, *, run: UUID | None = None, index: int | None = None, attempt: int | None = None
) -> Q:
    """Return the condition on chunks of a workspace or job, or of one part, attempt or run of it."""
    which = Q(holder_id=holder_id)
    for name, value in (("run", run), ("index", index), ("attempt", attempt)):
        if value is not None:
            which &= Q(**{f"stream__{name}": value})
    return which


def page(wanted: Wanted, after: Cursor | None, limit: int) -> Page:
    """Return up to `limit` lines after a place, in order."""
    order = Order(-1 if wanted.newest_first else 1)
    begin = None if after is None else order.key(after)
    needle = folded(wanted.search)
    kept: list[tuple[Key, Shown]] = []  # of all chunks so far, the first `limit` and one more
    for count, chunk in enumerate(_chunks(wanted, after)):
        bound = order.sign * microseconds(chunk.last_at if wanted.newest_first else chunk.first_at)
        if len(kept) > limit and kept[-1][0][0] < bound:
            break
        if count >= MOST_CHUNKS and (begin is None or bound > begin[0]):
            kept = [one for one in kept if one[0][0] < bound]
            if len(kept) <= limit:
                return Page([line for _, line in kept], order.begin(bound))
            break
        if needle and not holds(bytes(chunk.lines), needle):
            continue
        new = ((order.key(line.cursor), line) for line in lines_of(chunk, needle) if _is_within(line, wanted))
        kept += [one for one in new if begin is None or one[0] > begin]
        kept = sorted(kept, key=itemgetter(0))[: limit + 1]
    lines = [line for _, line in kept[:limit]]
    return Page(lines, lines[-1].cursor if len(kept) > limit else None)


def last(wanted: Wanted, limit: int) -> list[Shown]:
    """Return the last lines, in order."""
    newest = Wanted(wanted.which, wanted.search, wanted.since, wanted.until, newest_first=True)
    return page(newest, None, limit).lines[::-1]


def lines_of(chunk: LogChunk, needle: str = "") -> list[Shown]:
    """Return the lines of a chunk, or those that hold a folded text. Times never go back, as when they were stored."""
    stream, found = chunk.stream, []
    us = microseconds(chunk.first_at)
    for number, (ns, text) in enumerate(unpack(bytes(chunk.lines)), chunk.first_line):
        us = max(us, ns // 1000)
        if not needle or needle in folded(text):
            found.append(
                Shown(
                    EPOCH + timedelta(microseconds=us), text, number, stream.pk,
                    stream.holder_kind, stream.holder_id, stream.run, stream.index, stream.attempt,
                )
            )  # fmt: skip
    return found


def _is_within(line: Shown, wanted: Wanted) -> bool:
    return (wanted.since is None or line.at >= wanted.since) and (
        wanted.until is None or line.at < wanted.until
    )


def _chunks(wanted: Wanted, after: Cursor | None) -> Iterator[LogChunk]:
    """Yield chunks that may hold wanted lines, in order."""
    rows = LogChunk.objects.filter(wanted.which).select_related("stream").only(*COLUMNS)
    if wanted.since is not None:
        rows = rows.filter(last_at__gte=wanted.since)
    if wanted.until is not None:
        rows = rows.filter(first_at__lt=wanted.until)
    if after is not None:
        at = EPOCH + timedelta(microseconds=after.us)
        rows = rows.filter(first_at__lte=at) if wanted.newest_first else rows.filter(last_at__gte=at)
    bits = bits_of(wanted.search)[:MOST_BITS]
    rows = rows.alias(**{f"bit_{bit}": _bit(bit) for bit in bits}).filter(**{f"bit_{bit}": 1 for bit in bits})
    keys = ("last_at" if wanted.newest_first else "first_at", "stream_id", "first_line")
    rows = rows.order_by(*(f"-{name}" if wanted.newest_first else name for name in keys))
    size, found = FIRST_CHUNKS, list(rows[:FIRST_CHUNKS])
    while found:
        yield from found
        if len(found) < size:
            return
        size = NEXT_CHUNKS
        found = list(rows.filter(_beyond(found[-1], keys, wanted.newest_first))[:size])


def _bit(number: int) -> Func:
    return Func(F("grams"), Value(number), function="get_bit", output_field=IntegerField())


def _beyond(chunk: LogChunk, keys: tuple[str, ...], newest_first: bool) -> Q:
    """Return the condition on chunks that come after this one in an order."""
    than = "lt" if newest_first else "gt"
    condition, same = Q(), Q()
    for name in keys:
        value = getattr(chunk, name)
        condition |= same & Q(**{f"{name}__{than}": value})
        same &= Q(**{name: value})
    return condition
