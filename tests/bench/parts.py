"""Parts of Berth for a benchmark: a database, a web process; and what a process took of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

from portal.up import plan
from portal.up.postgres import Server
from tests.bench import Figure
from tests.e2e.stack import free_port, until


def settings_for(folder: Path, database: str) -> dict[str, str]:
    return {
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "BERTH_TRIAL": "1",
        "BERTH_SECRET_KEY": "only-for-benchmarks-" + "0" * 50,
        "BERTH_STATE_DIR": str(folder / "state"),
        "BERTH_PLAIN_STATIC": "1",
    }


@contextmanager
def database(folder: Path) -> Iterator[str]:
    server = Server(folder / "postgres", folder / "run")
    server.prepare()
    with (folder / "postgres.log").open("wb") as log:
        process = subprocess.Popen(server.command(), stdout=log, stderr=log, start_new_session=True)
    try:
        server.wait_until_ready()
        server.ensure_database()
        yield server.url
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def serving(environ: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """The web process as `make up` starts it, on a database that is brought up to date: its pid and port."""
    manage(environ, "migrate")
    port = free_port()
    process = subprocess.Popen(
        [*plan.web_command(port), "--log-level", "warning"],
        cwd=plan.REPOSITORY,
        env={**environ, "BERTH_ROLE": "web"},
    )

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                return True
        except OSError:
            return False

    try:
        until("Berth answers", answers)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(10)


def manage(environ: Mapping[str, str], *words: str) -> str:
    """What a management command prints."""
    command = [sys.executable, "manage.py", *words]
    return subprocess.run(
        command, cwd=plan.REPOSITORY, env=dict(environ), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def cpu_seconds(pid: int) -> float:
    """What the process itself has spent, its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int, which: str = "VmRSS") -> float:
    """What it has now; VmHWM: what it had at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{which}:")[2].split()[0]) / 1024


def spread(what: str, seconds: Sequence[float]) -> list[Figure]:
    cuts = quantiles(seconds, n=20)
    found = {"p50": cuts[9], "p95": cuts[18], "at most": max(seconds)}
    return [Figure(f"{what}, {name}", value * 1000, "ms") for name, value in found.items()]
