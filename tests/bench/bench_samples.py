"""2,000 GPUs that report every 5 s for 10 minutes, over HTTP: what it takes, what is stored, how pages fare"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import psycopg

from tests.bench import Figure
from tests.bench.helpers.fleet import GPUS_PER_NODE, Fleet
from tests.bench.helpers.parts import begin, call, cpu_of, installation, rows_of, serving, spent, spread

SECONDS = int(os.environ.get("BERTH_BENCH_SECONDS", "600"))
NODES, WEBS = 250, 2
INTERVAL_SECONDS = 5
GPUS = NODES * GPUS_PER_NODE
ASK_SECONDS = 1.0
# GPUs whose whole history exists from the start; the others have samples only.
WITH_HISTORY = 100
LEVELS = {  # name: (step, how long it is kept) in seconds
    "samples": (0, 2 * 3600),
    "minutes": (60, 2 * 86400),
    "ten_minutes": (600, 30 * 86400),
    "hours": (3600, 400 * 86400),
}
HISTORY = """
    INSERT INTO monitoring_figure
    SELECT id, at, 40000 + at %% 1000, 50000 + at %% 7919, %(step)s, 1, 300, 60
    FROM (SELECT id FROM monitoring_track WHERE device <> '' ORDER BY id %% 97, id LIMIT %(gpus)s) AS track,
        generate_series(%(since)s::int, %(until)s::int, %(every)s) AS at
"""


def measure() -> Iterator[Figure]:
    with ExitStack() as stack:
        folder, environ = stack.enter_context(installation())
        webs = [stack.enter_context(serving(environ)) for _ in range(WEBS)]
        secret, *of_readers = call(environ, "seeds.samples", NODES)
        fleet = Fleet(NODES, [port for _pid, port in webs], secret, INTERVAL_SECONDS)
        fleet.tell_once()
        with rows_of(folder) as rows:
            _make_history(rows)
            thinner = stack.enter_context(_thinning(environ))
            readers = Readers(webs[0][1], *of_readers)
            yield from _load(folder, webs, thinner, fleet, readers)
            yield from _stored(rows, fleet)
    for what, seconds in sorted(readers.took.items()):
        yield from spread(f"page under load: {what}", seconds)[:2]


def _load(
    folder: Path, webs: Sequence[tuple[int, int]], thinner: int, fleet: Fleet, readers: Readers
) -> Iterator[Figure]:
    postmaster = int((folder / "postgres" / "postmaster.pid").read_text().split()[0])
    pids = {
        "web": [pid for pid, _port in webs],
        "thinning": [thinner],
        "agents that are played": [os.getpid()],
    }
    before, began = cpu_of(pids), time.monotonic()
    database_before = _with_reaped(postmaster)
    with readers.asking():
        fleet.tell_for(SECONDS)
    took = time.monotonic() - began
    shares = spent(before, cpu_of(pids)) | {"database": _with_reaped(postmaster) - database_before}
    yield Figure("GPUs", GPUS, f"on {NODES} nodes, a report every {INTERVAL_SECONDS} s, for {took:.0f} s")
    yield Figure("reports taken", len(fleet.lags) / took, f"a second; not taken: {fleet.refused or 'none'}")
    for part, seconds in shares.items():
        yield Figure(f"CPU of {part}", seconds / took * 100, "% of a core")
    yield from spread("lag of a report, from when it was due until the answer", fleet.lags)


def _stored(rows: psycopg.Connection[tuple[int, ...]], fleet: Fleet) -> Iterator[Figure]:
    rows.execute("VACUUM ANALYZE")
    newest = f"SELECT count(*) FROM monitoring_figure_samples WHERE at >= {fleet.began_at}"
    stored = _number(rows, newest) / GPUS_PER_NODE
    yield Figure("reports stored", stored, f"of {len(fleet.lags)} that were taken")
    total = 0.0
    for name, (step, kept_seconds) in LEVELS.items():
        table = f"monitoring_figure_{name}"
        bytes_of_row = _number(rows, f"SELECT pg_total_relation_size('{table}') / count(*) FROM {table}")
        every = step or INTERVAL_SECONDS
        per_gpu, per_day = kept_seconds / every, 86400 / every
        total += per_gpu * bytes_of_row
        yield Figure(
            f"stored of a GPU: {name}",
            per_gpu * bytes_of_row / 1024,
            f"KiB: {per_gpu:.0f} rows of {bytes_of_row} bytes; a day of them {per_day * bytes_of_row / 1024:.0f} KiB",
        )
    yield Figure(f"stored of {GPUS} GPUs when all ages are full", total * GPUS / 2**30, "GiB")
    yield Figure(
        "the rows of GPUs", _number(rows, "SELECT pg_total_relation_size('clusters_gpu')") / 2**20, "MiB"
    )


def _number(rows: psycopg.Connection[tuple[int, ...]], query: str) -> int:
    found = rows.execute(query).fetchone()
    assert found is not None
    return int(found[0])


def _make_history(rows: psycopg.Connection[tuple[int, ...]]) -> None:
    """Make two hours of samples for all GPUs, so that each minute thins some, and older history for a few."""
    now = int(time.time())
    newest = now - 300  # before the first report
    for name, (step, kept_seconds) in LEVELS.items():
        gpus = WITH_HISTORY if step else GPUS
        oldest = now - kept_seconds
        values = {"gpus": gpus, "every": step or INTERVAL_SECONDS, "step": step}
        values |= {"since": oldest - oldest % (step or 1), "until": newest}
        newest = oldest - 3600
        rows.execute(HISTORY, values)
        rows.execute(f"VACUUM ANALYZE monitoring_figure_{name}")
    rows.execute("ANALYZE")


@contextmanager
def _thinning(environ: dict[str, str]) -> Iterator[int]:
    process = begin(environ, "seeds.thin_each_minute")
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(10)


def _with_reaped(postmaster: int) -> float:
    """Return the CPU seconds of all of PostgreSQL, with its processes that have ended."""
    fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    pids = {"database": [postmaster, *map(int, children)]}
    return ended + sum(cpu_of(pids)["database"].values())


class Readers:
    """People who open pages meanwhile: all addresses in turn, one per second."""

    def __init__(self, port: int, person: str, admin: str, workspace: str, node: str) -> None:
        of_workspace = f"/workspaces/{workspace}/metrics/"
        self._asked = {
            "a workspace's figures, one hour (API)": (person, f"/api/v1{of_workspace}?window=1h"),
            "a workspace's figures, one day (API)": (person, f"/api/v1{of_workspace}?window=24h"),
            "a workspace's figures, 30 days (API)": (person, f"/api/v1{of_workspace}?window=30d"),
            "a workspace's Metrics tab": (person, of_workspace),
            "the map of GPUs": (admin, "/gpus/"),
            "a node's page (admin)": (admin, f"/admin/clusters/node/{node}/change/"),
        }
        self._port = port
        self.took: dict[str, list[float]] = {what: [] for what in self._asked}

    @contextmanager
    def asking(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._ask, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _ask(self, over: threading.Event) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=30)
        while True:
            for what, (session, path) in self._asked.items():
                if over.wait(ASK_SECONDS):
                    return
                began = time.monotonic()
                connection.request("GET", path, headers={"Cookie": f"berth_session={session}"})
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200, (path, answer.status)
                self.took[what].append(time.monotonic() - began)
