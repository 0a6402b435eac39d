"""The queue with its 500 nodes with 2,000 GPUs: 1,000 requests at once, and a pass over 1,000 that wait"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.up import plan
from tests.bench import Figure
from tests.bench.helpers.parts import begin, call, installation, result

REQUESTS = 1_000
ASKING = 2  # processes, each with eight threads


def measure() -> Iterator[Figure]:
    with installation() as (_folder, environ):
        call(environ, "askers.prepare")
        yield from _at_once(environ)
        for what in ("the first, which tells all why they wait", "the next, in which nothing changed"):
            took_ms = call(environ, "askers.one_pass")
            yield Figure(f"a whole pass over 1,000 that wait: {what}", took_ms, "ms")


def _at_once(environ: dict[str, str]) -> Iterator[Figure]:
    """Time from the first request until the worker has decided on the last; the GPUs last for half of them."""
    with _working(environ):
        call(environ, "askers.wait_for_worker")
        deciding = begin(environ, "askers.wait_until_decided", REQUESTS)
        asking = [begin(environ, "askers.ask", REQUESTS // ASKING) for _process in range(ASKING)]
        began = min(map(result, asking))
        seconds = result(deciding) - began
    admitted = call(environ, "askers.admitted")
    rate = REQUESTS / seconds
    yield Figure(f"decisions while {REQUESTS} ask at once, {admitted} admitted", rate, "a second")


@contextmanager
def _working(environ: dict[str, str]) -> Iterator[None]:
    command = [sys.executable, "manage.py", "worker"]
    with Path(environ["BERTH_STATE_DIR"], "worker.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=plan.REPOSITORY, env={**environ, "BERTH_ROLE": "worker"}, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)
