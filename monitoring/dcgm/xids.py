"""The driver's errors (Xids) of a GPU as dcgm-exporter has them: neither of its gauges lists them. Pure.

COUNT, off by default, tells by number (label `xid`) how many there were within a while that moves along, five minutes
unless the exporter was told otherwise (label `window_size_in_ms`), and 0 without a number where there were none. So it
falls as errors age, and when the exporter starts anew: what is more than in the scrape before is new, nothing else.

LAST tells the number of the last one, for ever, and 0 if there was none: here that is a count of one. The same error
once more is not seen by it.

Nobody knows better than the scrape that saw an error first when it was.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from monitoring.dcgm.prometheus import Series

LAST, COUNT = "DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT"
LONGEST_NUMBER = 4

Counts = Mapping[int, int]


@dataclass(frozen=True)
class Seen:
    """What was read of a GPU before, and when. None: that gauge was not there."""

    at: float
    last: int | None = None
    counts: Counts | None = None


@dataclass
class Scrapes:
    """Of one GPU: what each scrape counted, by either gauge."""

    last: dict[float, dict[int, int]] = field(default_factory=dict)
    counts: dict[float, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    window_seconds: float = math.inf

    def add(self, metric: str, series: Series) -> None:
        if metric == LAST:
            self.last |= {at: _one(int(value)) for at, value in series.samples}
        elif metric == COUNT:
            xid, window = _number(series.labels.get("xid", "")), series.labels.get("window_size_in_ms", "")
            for at, value in series.samples:
                self.counts[at] |= {xid: int(value)} if xid and value else {}
            if window.isdecimal():
                self.window_seconds = int(window) / 1000

    def new(self, seen: Seen | None) -> Iterator[tuple[int, float]]:
        """Which, and when. What was there when we first looked may be of any time, and is not told."""
        scrapes, before = self._told(seen)
        if not scrapes:
            return
        times = sorted(scrapes)
        since = seen.at + 0.001 if seen else times[0]  # a database knows times to the microsecond
        if before is None:
            since = max((at for at in times if at <= since), default=times[0])
            before = scrapes[since]
        for at in (at for at in times if at > since):
            are_all_new = at - self.window_seconds >= since
            for xid, count in scrapes[at].items():
                if are_all_new or count > before.get(xid, 0):
                    yield xid, at
            before, since = scrapes[at], at

    def newest(self, after: float) -> Counts | None:
        """What the last scrape counted; None where there was none since."""
        at = max(self.counts, default=-math.inf)
        return self.counts[at] if at >= after else None

    def _told(self, seen: Seen | None) -> tuple[Mapping[float, Counts], Counts | None]:
        """By the gauge that tells more, and what that one told before."""
        if self.counts:
            return self.counts, seen.counts if seen else None
        return self.last, _one(seen.last) if seen and seen.last is not None else None


def _number(label: str) -> int:
    return int(label) if label.isdecimal() and len(label) <= LONGEST_NUMBER else 0


def _one(xid: int) -> dict[int, int]:
    return {xid: 1} if xid else {}
