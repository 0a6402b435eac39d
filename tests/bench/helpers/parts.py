"""Parts of Berth for a benchmark (a database, a web process), and the CPU and memory that a process took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psycopg

from portal.up import plan
from portal.up.postgres import Server
from tests.bench import Figure
from tests.e2e.stack import Stack, until
from tests.shared.ports import free_port

PARTS = ("web", "worker", "watcher", "collector", "ssh-jump", "postgres", "cluster")


# A cluster for workspaces without GPUs.
CPU_NODES = "nodes: [{name: cpu, count: 2, cpu: 256, memory: 2Ti}]"
RUNS, TIMES = 3, 30


@contextmanager
def temporary() -> Iterator[Path]:
    """Yield a temporary folder. PostgreSQL, which does not run as root, must reach its files there."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)


@contextmanager
def trial(nodes: str) -> Iterator[Stack]:
    """Start a trial with simulated pods on these nodes, in a temporary folder; stop it at the end."""
    with temporary() as folder:
        (folder / "nodes.yaml").write_text(nodes)
        simulated = {"BERTH_DEVCLUSTER_PODS": "played", "BERTH_DEVCLUSTER_NODES": str(folder / "nodes.yaml")}
        stack = Stack(folder / "stack", **simulated)
        stack.start()
        try:
            yield stack
        finally:
            stack.stop()


@contextmanager
def on_cluster(kubeconfig: str) -> Iterator[Stack]:
    """Start Berth on a real cluster, with its database in a temporary folder; stop it at the end."""
    with temporary() as folder:
        given = {name: os.environ[name] for name in plan.CATALOGUE_SETTINGS if name in os.environ}
        stack = Stack(folder / "stack", KUBECONFIG=kubeconfig, **given)
        stack.start()
        try:
            yield stack
        finally:
            stack.stop()


def wait_until_ready(stack: Stack, count: int) -> None:
    """Wait until that many workspaces are ready."""
    api = stack.client(stack.token("admin", "read", "admin"))
    ready = "workspaces/?phase=ready&limit=500"
    until("all are ready", lambda: len(api.everything(ready)) == count, 150, pause=0.5)


@contextmanager
def installation() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a temporary folder with a migrated database, and the environment for processes of Berth there."""
    with temporary() as folder, _database(folder) as url:
        (folder / "state" / "collected").mkdir(parents=True)
        environ = os.environ | {
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "BERTH_TRIAL": "1",
            "BERTH_SECRET_KEY": "only-for-benchmarks-" + "0" * 50,
            "BERTH_STATE_DIR": str(folder / "state"),
            "BERTH_PLAIN_STATIC": "1",
        }
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(command, cwd=plan.REPOSITORY, env=environ, check=True)
        yield folder, environ


def rows_of(folder: Path) -> psycopg.Connection[Any]:
    """Connect to the database of an installation."""
    return psycopg.connect(host=str(folder / "run"), user="berth", dbname="berth", autocommit=True)


@contextmanager
def _database(folder: Path) -> Iterator[str]:
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
    """Start the web process as `make up` does; yield its pid and port."""
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


def call(environ: Mapping[str, str], function: str, *values: Any) -> Any:
    """Run a function of `tests.bench.helpers`, as seeds.lists, in a process with Django. Return what it returns."""
    return result(begin(environ, function, *values))


def begin(environ: Mapping[str, str], function: str, *values: Any) -> subprocess.Popen[str]:
    module, _, name = function.partition(".")
    code = (
        f"import json; from tests.bench.helpers.{module} import {name}; print(json.dumps({name}(*{values})))"
    )
    command = [sys.executable, "manage.py", "shell", "-c", code]
    return subprocess.Popen(
        command, cwd=plan.REPOSITORY, env=dict(environ), stdout=subprocess.PIPE, text=True
    )


def result(process: subprocess.Popen[str]) -> Any:
    printed, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return json.loads(printed.splitlines()[-1])


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
    parts = {part: _with_children(stack.pid(part)) for part in PARTS if stack.runs(part)}
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


def ask_often(what: str, web: int, ask: Callable[[], object]) -> Figure:
    """Return the p95 of the worst run, with the CPU that the web process takes for one request."""
    ask()
    cpu, p95s, middle = cpu_seconds(web), [], 0.0
    for _run in range(RUNS):
        took = []
        for _time in range(TIMES):
            began = time.monotonic()
            ask()
            took.append((time.monotonic() - began) * 1000)
        middle = median(took)
        p95s.append(quantiles(took, n=20)[18])
    cpu = (cpu_seconds(web) - cpu) * 1000 / RUNS / TIMES
    said = ", ".join(f"{p95:.1f}" for p95 in p95s)
    return Figure(
        f"{what}: p95", max(p95s), f"ms, the worst of {said}; p50 {middle:.1f}; CPU of web {cpu:.1f}"
    )


def spread(what: str, seconds: Sequence[float]) -> list[Figure]:
    cuts = quantiles(seconds, n=20, method="inclusive")  # with few values, "exclusive" exceeds the slowest
    found = {"p50": cuts[9], "p95": cuts[18], "at most": max(seconds)}
    return [Figure(f"{what}, {name}", value * 1000, "ms") for name, value in found.items()]
