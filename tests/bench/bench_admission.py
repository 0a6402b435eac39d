"""The queue with its 500 nodes with 2,000 GPUs: 1,000 requests at once, and a pass over 1,000 that wait"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from portal.up import plan
from tests.bench import Figure
from tests.bench.helpers.parts import installation, manage

REQUESTS = 1_000
ASKING = 2  # processes, each with eight threads


def measure() -> Iterator[Figure]:
    with ExitStack() as stack:
        _folder, environ = stack.enter_context(installation())
        manage(environ, "migrate")
        run(environ, "prepare()")
        yield from _at_once(environ)
        for what in ("the first, which tells all why they wait", "the next, in which nothing changed"):
            yield Figure(
                f"a whole pass over 1,000 that wait: {what}", float(run(environ, "one_pass()")), "ms"
            )


def _at_once(environ: dict[str, str]) -> Iterator[Figure]:
    """Time from the first request until the worker has decided on the last; the GPUs last for half of them."""
    with working(environ):
        run(environ, "wait_for_worker()")
        decided = start(environ, f"wait_until_decided({REQUESTS})")
        asking = [start(environ, f"ask({REQUESTS // ASKING})") for _process in range(ASKING)]
        began = min(float(said(process)) for process in asking)
        seconds = float(said(decided)) - began
    admitted = run(environ, "admitted()")
    yield Figure(
        f"decisions while {REQUESTS} ask at once, {admitted} admitted", REQUESTS / seconds, "a second"
    )


@contextmanager
def working(environ: dict[str, str]) -> Iterator[None]:
    command = [sys.executable, "manage.py", "qcluster"]
    with Path(environ["BERTH_STATE_DIR"], "worker.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=plan.REPOSITORY, env={**environ, "BERTH_ROLE": "worker"}, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def start(environ: dict[str, str], call: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "manage.py",
        "shell",
        "-c",
        f"from tests.bench import askers; print(askers.{call})",
    ]
    return subprocess.Popen(command, cwd=plan.REPOSITORY, env=environ, stdout=subprocess.PIPE, text=True)


def run(environ: dict[str, str], call: str) -> str:
    return said(start(environ, call))


def said(process: subprocess.Popen[str]) -> str:
    """Return the last word that the process prints."""
    printed, _nothing = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return printed.split()[-1]
