"""Counters, histograms and gauges of Prometheus, counted in the process and added to rows now and then.

Counting takes a lock and a dictionary, no query. `write` adds the counts since the last time in one statement, and does
nothing if there are none. A killed process loses its counts of the last seconds, which is acceptable for metrics.
"""

from __future__ import annotations

import json
import os
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

from vitals.models import Figure

INFINITE = "+Inf"
# From a quick query to the pull of a large image.
SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)

Sample = tuple[str, str]  # name, labels


class _Tally:
    """Counts of this process that are not written yet, and its current gauges."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Start at zero in a forked child: the parent writes its own counts, and a thread there may hold the lock."""
        self.lock = threading.Lock()
        self.pending: dict[Sample, float] = defaultdict(float)
        self.gauges: dict[str, int] = defaultdict(int)

    def add(self, samples: Mapping[Sample, float]) -> None:
        with self.lock:
            for sample, value in samples.items():
                self.pending[sample] += value

    def take(self) -> dict[Sample, float]:
        with self.lock:
            taken, self.pending = self.pending, defaultdict(float)
            return taken


_tally = _Tally()
os.register_at_fork(after_in_child=_tally.begin_anew)


@dataclass(frozen=True)
class Counter:
    name: str
    words: str
    labels: tuple[str, ...] = ()
    # Reported as 0 until they happen: Prometheus sees no increase from no sample to 1.
    known: tuple[tuple[str, ...], ...] = ()

    def count(self, *values: str) -> None:
        self.add(1, *values)

    def add(self, amount: float, *values: str) -> None:
        _tally.add({(self.name, _key(self.labels, values)): amount})


@dataclass(frozen=True)
class Histogram:
    name: str
    words: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = SECONDS

    def observe(self, seconds: float, *values: str) -> None:
        """Record a duration; a negative one (the clock was set back) counts as 0."""
        seconds = max(0.0, seconds)
        index = bisect_left(self.bounds, seconds)
        bound = f"{self.bounds[index]:g}" if index < len(self.bounds) else INFINITE
        in_bucket = (f"{self.name}_bucket", _key((*self.labels, "le"), (*values, bound)))
        _tally.add({in_bucket: 1, (f"{self.name}_sum", _key(self.labels, values)): seconds})

    @contextmanager
    def timed(self, *values: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.observe(time.monotonic() - began, *values)


@dataclass(frozen=True)
class Gauge:
    """A current value of this process; values of all live processes are summed."""

    name: str
    words: str

    def add(self, difference: int) -> None:
        with _tally.lock:
            _tally.gauges[self.name] += difference


def gauges() -> dict[str, int]:
    with _tally.lock:
        return dict(_tally.gauges)


def write() -> None:
    """Add the counts since the last time to the rows. If that fails, keep them for the next time."""
    taken = _tally.take()
    if not taken:
        return
    try:
        _upsert(taken)
    except BaseException:
        _tally.add(taken)
        raise


def _upsert(taken: Mapping[Sample, float]) -> None:
    """Write in the order of the keys, so that processes that write the same rows never deadlock."""
    ordered = sorted(taken)
    table = connection.ops.quote_name(Figure._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} AS there (name, labels, value) "  # noqa: S608  (a name of ours)
            "SELECT * FROM unnest(%s::text[], %s::text[], %s::float8[]) "
            "ON CONFLICT (name, labels) DO UPDATE SET value = there.value + EXCLUDED.value",
            [
                [name for name, _ in ordered],
                [labels for _, labels in ordered],
                [taken[key] for key in ordered],
            ],
        )


def _key(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    return json.dumps(dict(zip(names, values, strict=True)), sort_keys=True)
