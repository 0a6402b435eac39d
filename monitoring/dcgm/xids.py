"""New errors (Xids) of a GPU, derived from dcgm-exporter's two gauges: neither lists errors. Pure.

COUNT, off by default, has the number of errors by Xid (label `xid`) within a moving window. The window is five minutes
unless the exporter is configured otherwise (label `window_size_in_ms`). Without errors COUNT is 0, without a label. It
falls as errors age, and when the exporter restarts: only an increase since the scrape before is a new error.

LAST has the Xid of the last error, for ever, and 0 if there was none: here that is a count of one. It cannot show the
same error twice.

The time of an error is the time of the scrape that saw it first: no better source exists.
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
class EarlierReading:
    """Earlier reading of a GPU, with its time. None: the gauge was not there."""

    at: float
    last: int | None = None
    counts: Counts | None = None


@dataclass
class Scrapes:
    """Counts of one GPU by scrape, for each gauge."""

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

    def new(self, seen: EarlierReading | None) -> Iterator[tuple[int, float]]:
        """Yield (xid, time) of new errors. Errors in the very first scrape are skipped: they may be of any age."""
        scrapes, before = self._counted(seen)
        if not scrapes:
            return
        times = sorted(scrapes)
        since = seen.at + 0.001 if seen else times[0]  # the database stores times to the microsecond
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
        """Return the counts of the last scrape; None if it is older than `after`."""
        at = max(self.counts, default=-math.inf)
        return self.counts[at] if at >= after else None

    def _counted(self, seen: EarlierReading | None) -> tuple[Mapping[float, Counts], Counts | None]:
        """Return the counts of the gauge with more detail, and that gauge's earlier counts."""
        if self.counts:
            return self.counts, seen.counts if seen else None
        return self.last, _one(seen.last) if seen and seen.last is not None else None


def _number(label: str) -> int:
    return int(label) if label.isdecimal() and len(label) <= LONGEST_NUMBER else 0


def _one(xid: int) -> dict[int, int]:
    return {xid: 1} if xid else {}
