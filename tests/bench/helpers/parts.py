"""Parts of Berth for a benchmark (a database, a web process), and the CPU and memory that a process took."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import quantiles

from portal.up import plan
from portal.up.postgres import Server
from tests.bench import Figure
from tests.e2e.stack import Stack, until
from tests.shared.ports import free_port

PARTS = ("web", "worker", "watcher", "ssh-jump", "postgres", "cluster")


def settings_for(folder: Path, database: str) -> dict[str, str]:
    (folder / "state" / "collected").mkdir(parents=True)
    return {
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "BERTH_TRIAL": "1",
        "BERTH_SECRET_KEY": "only-for-benchmarks-" + "0" * 50,
        "BERTH_STATE_DIR": str(folder / "state"),
        "BERTH_PLAIN_STATIC": "1",
    }


@contextmanager
def installation() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a temporary folder with a database in it, and the environment for processes of Berth there."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # PostgreSQL, which does not run as root, must reach its files
        with database(folder) as url:
            yield folder, os.environ | settings_for(folder, url)


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
    """Migrate the database and start the web process as `make up` does; yield its pid and port."""
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
    """Run a management command and return what it prints."""
    command = [sys.executable, "manage.py", *words]
    return subprocess.run(
        command, cwd=plan.REPOSITORY, env=dict(environ), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that the process itself has spent, all threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int, which: str = "VmRSS") -> float:
    """Return the memory of a process: resident now, or at most (VmHWM)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{which}:")[2].split()[0]) / 1024


def processes_of(stack: Stack) -> dict[str, list[int]]:
    """Return the processes of each part, and those of `make up` itself with its supervisor."""
    assert stack.process is not None
    parts = {part: _with_children(stack.pid(part)) for part in PARTS}
    return parts | {"supervisor and make up": [stack.process.pid, stack.pid("supervisor")]}


def _with_children(pid: int) -> list[int]:
    """Return a process and its descendants. PostgreSQL's cannot be found by their environment: they overwrite it."""
    children = [
        int(child)
        for path in Path(f"/proc/{pid}/task").glob("*/children")
        for child in path.read_text().split()
    ]
    return [pid, *(one for child in children for one in _with_children(child))]


def cpu_of(pids: Mapping[str, Sequence[int]]) -> dict[str, dict[int, float]]:
    """Return CPU seconds by part and process, without processes that ended, as PostgreSQL's cleaners do."""
    found: dict[str, dict[int, float]] = {part: {} for part in pids}
    for part, of_part in pids.items():
        for pid in of_part:
            with suppress(FileNotFoundError, ProcessLookupError):
                found[part][pid] = cpu_seconds(pid)
    return found


def spent(before: dict[str, dict[int, float]], after: dict[str, dict[int, float]]) -> dict[str, float]:
    """Return seconds of CPU by part."""
    return {part: sum(after[part][pid] - before[part][pid] for pid in after[part]) for part in after}


def spread(what: str, seconds: Sequence[float]) -> list[Figure]:
    cuts = quantiles(seconds, n=20, method="inclusive")  # with few values, "exclusive" exceeds the slowest
    found = {"p50": cuts[9], "p95": cuts[18], "at most": max(seconds)}
    return [Figure(f"{what}, {name}", value * 1000, "ms") for name, value in found.items()]
