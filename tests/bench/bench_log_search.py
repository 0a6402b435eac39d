"""Search over 5 million stored lines of one tenant, in 20 partitions"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import median, quantiles

from tests.bench import Figure
from tests.bench.helpers.parts import call, installation

LINES = int(os.environ.get("BERTH_BENCH_LINES", "5000000"))
ROUNDS = 40


def measure() -> Iterator[Figure]:
    with installation() as (_folder, environ):
        began = time.monotonic()
        tenant, job = call(environ, "log_search.fill", LINES)
        yield Figure("lines", LINES, "")
        yield Figure("filled in", time.monotonic() - began, "s")
        yield Figure("on disk", call(environ, "log_search.size_mib"), "MiB")
        for kind, seconds in call(environ, "log_search.searches", tenant, job, ROUNDS).items():
            yield Figure(f"{kind}: median", median(seconds) * 1000, "ms")
            yield Figure(f"{kind}: p95", quantiles(seconds, n=20)[-1] * 1000, "ms")
