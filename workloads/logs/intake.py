"""Lines of a container's log: time and text of each, which were stored before, and which are too much. Pure.

After a cut the server is asked again from a second that lies before the last stored line, and sends lines again that
are stored. They are known by time and text, so that none comes twice and none is missed, whatever the server kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from .chunks import Entry, size_of

SECOND = 10**9
# The API server cuts `sinceTime` to whole seconds, and lines of stdout and stderr may be out of order by a moment.
OVERLAP_NS = SECOND
LONGEST_LINE_BYTES = 16 * 2**10
# Pace of one container, by the times of its lines: what a collector reads late is not more for that.
BURST_BYTES, BYTES_PER_SECOND = 16 * 2**20, 256 * 2**10
BURST_LINES, LINES_PER_SECOND = 100_000, 2_000


def read(line: str, before_ns: int | None) -> Entry | None:
    """Return the entry of a line with its time in front, in RFC 3339.

    A piece of a long line has no time of its own, but `before_ns`, that of the line before. Without one these are words
    of the kubelet, and no line of the container: None.
    """
    stamp, _, text = line.partition(" ")
    try:
        return Entry(nanoseconds(stamp), text)
    except ValueError:
        return None if before_ns is None else Entry(before_ns, line)


def nanoseconds(stamp: str) -> int:
    """Return nanoseconds since 1970 of a time in RFC 3339, with up to nine digits of a second."""
    if len(stamp) < 20 or stamp[10] != "T":
        raise ValueError(stamp)
    rest = stamp[19:]
    digits = ""
    if rest[0] == ".":
        end = next((at for at, sign in enumerate(rest[1:], 1) if not sign.isdecimal()), len(rest))
        digits, rest = rest[1:end], rest[end:]
    return _seconds(stamp[:19], rest) * SECOND + int(digits[:9].ljust(9, "0"))


@lru_cache(1024)
def _seconds(stamp: str, zone: str) -> int:
    moment = datetime.fromisoformat(stamp + zone)
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    return int(moment.timestamp())


def moment(ns: int) -> datetime:
    """Return the time of an entry, to the microsecond."""
    return datetime.fromtimestamp(ns // SECOND, UTC) + timedelta(microseconds=ns % SECOND // 1000)


def since_ns(last_ns: int) -> int:
    """Return from when to ask for lines again, after lines up to `last_ns` were stored; 0: from the beginning."""
    return max(0, last_ns - OVERLAP_NS) // SECOND * SECOND


class Stored:
    """Lines that are stored, of the time that the server is asked for again."""

    def __init__(self, entries: Iterable[Entry], last_ns: int, dropped_until_ns: int) -> None:
        since = since_ns(last_ns)
        self._left = Counter(entry for entry in entries if entry.ns >= since)
        self._until_ns = last_ns + OVERLAP_NS
        self._dropped_until_ns = dropped_until_ns

    def has(self, entry: Entry) -> bool:
        """Return True if this line was stored, or dropped, before. Each stored line counts once."""
        if not self._left and entry.ns > self._dropped_until_ns:
            return False
        if self._left.get(entry):
            self._left[entry] -= 1
            if not self._left[entry]:
                del self._left[entry]
            return True
        if entry.ns > self._until_ns:
            self._left.clear()
        return entry.ns <= self._dropped_until_ns


@dataclass
class Pace:
    """Bytes and lines that a container may still write. They come back with the time of its lines."""

    size: float = BURST_BYTES
    lines: float = BURST_LINES
    at_ns: int = 0

    def allows(self, entry: Entry) -> bool:
        if self.at_ns and entry.ns > self.at_ns:
            seconds = (entry.ns - self.at_ns) / SECOND
            self.size = min(BURST_BYTES, self.size + seconds * BYTES_PER_SECOND)
            self.lines = min(BURST_LINES, self.lines + seconds * LINES_PER_SECOND)
        self.at_ns = max(self.at_ns, entry.ns)
        if self.size < size_of(entry.text) or self.lines < 1:
            return False
        self.size -= size_of(entry.text)
        self.lines -= 1
        return True


@dataclass
class Intake:
    """New lines of one log, in order: `take` each line as it comes, `hand_over` what gathered."""

    stored: Stored
    pace: Pace = field(default_factory=Pace)
    entries: list[Entry] = field(default_factory=list)
    size: int = 0
    dropped: int = 0
    dropped_until_ns: int = 0
    _untold: int = 0
    _before_ns: int | None = None

    def begin(self, stored: Stored) -> None:
        """Begin to read anew, after what is stored and gathered by now."""
        self.stored, self._before_ns = stored, None

    def take(self, line: bytes) -> None:
        entry = read(line.decode(errors="replace"), self._before_ns)
        if entry is None:
            return
        self._before_ns = entry.ns
        if self.stored.has(entry):
            return
        if not self.pace.allows(entry):
            self.dropped, self._untold = self.dropped + 1, self._untold + 1
            self.dropped_until_ns = max(self.dropped_until_ns, entry.ns)
            return
        self.tell_dropped()
        self._add(entry)

    def tell_dropped(self) -> None:
        """Say in the log how many lines are missing."""
        if self._untold:
            text = f"[Berth: {self._untold} lines are not kept here: the container writes too fast.]"
            self._untold = 0
            self._add(Entry(self.dropped_until_ns, text))

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.size += size_of(entry.text)

    def hand_over(self) -> tuple[list[Entry], int, int]:
        """Return the new entries, how many lines were dropped since, and the time of the last that ever was."""
        self.tell_dropped()
        taken = self.entries, self.dropped, self.dropped_until_ns
        self.entries, self.dropped, self.size = [], 0, 0
        return taken
