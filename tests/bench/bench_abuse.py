"""One member's token at full speed from 16 connections, and everybody else's pages meanwhile (BENCH_SECONDS=300)"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPConnection

from portal.up.plan import REPOSITORY
from tests.bench import Figure
from tests.bench.helpers.parts import CPU_NODES, call, memory_mib, spread, trial, wait_until_ready
from tests.e2e.stack import Stack

SECONDS = float(os.environ.get("BENCH_SECONDS", "300"))
BEFORE_SECONDS = min(60.0, SECONDS)
PAUSE_SECONDS = 0.5
MIB = 2**20
# deploy/kubernetes/web.yaml
LIMIT_MIB = 1024


def measure() -> Iterator[Figure]:
    with trial(CPU_NODES) as stack:
        teams = call(stack.environ, "seeds.sockets", 2, 1, 1)
        wait_until_ready(stack, len(teams))
        ((theirs,), (session,)), ((mine,), _session) = teams
        pages = Pages(stack, session, theirs)
        pages.read(len(pages.paths) * PAUSE_SECONDS)  # once each: what is compiled at the first call
        before, _statuses = pages.read(BEFORE_SECONDS)
        size, memory = database_bytes(stack), memory_mib(stack.pid("web"), "VmHWM")
        abuser = begin(stack, mine, theirs)
        during, statuses = pages.read(SECONDS)
        counts: dict[str, int] = json.loads(abuser.communicate(timeout=120)[0])
        quiet, busy = spread("pages of others, before", before), spread("pages of others, during", during)
        yield from (*quiet, *busy)
        yield Figure(
            "pages of others: p95 is as long (aim: at most 2)", busy[1].value / quiet[1].value, "times"
        )
        for status, count in sorted(statuses.items()):
            yield Figure(f"pages of others, answered {status}", count, "")
        peak = memory_mib(stack.pid("web"), "VmHWM")
        yield Figure(f"web's peak memory (limit {LIMIT_MIB})", peak, f"MiB ({memory:.0f} before)")
        grown = (database_bytes(stack) - size) / MIB
        yield Figure("the database has grown by (aim: less than 50)", grown, "MiB")
        yield Figure("the abuser's requests", sum(counts.values()) / SECONDS, "a second")
        for what, count in sorted(counts.items()):
            yield Figure(f"the abuser: {what}", count, "")


class Pages:
    """Pages and API of another person, read at a steady pace, however long each takes."""

    def __init__(self, stack: Stack, session: str, workspace: str) -> None:
        self.paths = (
            "/", f"/workspaces/{workspace}/", "/launch/", "/usage/", "/gpus/", "/api/v1/workspaces/",
        )  # fmt: skip
        self._port, self._cookie = stack.port, f"berth_session={session}"

    def read(self, seconds: float) -> tuple[list[float], Counter[int]]:
        """Return the seconds that each page took, and their statuses."""
        began, asked = time.monotonic(), list[Future[tuple[float, int]]]()
        with ThreadPoolExecutor(32) as readers:
            while (elapsed := time.monotonic() - began) < seconds:
                asked.append(readers.submit(self._ask, self.paths[len(asked) % len(self.paths)]))
                time.sleep(max(0.0, len(asked) * PAUSE_SECONDS - elapsed))
        answers = [one.result() for one in asked]
        return [took for took, _status in answers], Counter(status for _took, status in answers)

    def _ask(self, path: str) -> tuple[float, int]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        began = time.monotonic()
        try:
            connection.request("GET", path, headers={"Cookie": self._cookie})
            answer = connection.getresponse()
            answer.read()
            return time.monotonic() - began, answer.status
        finally:
            connection.close()


def begin(stack: Stack, mine: str, foreign: str) -> subprocess.Popen[str]:
    asked = {
        "address": stack.address,
        "token": stack.token("team-1-0", "read", "workspaces"),
        "workspace": mine,
        "foreign": foreign,
        "seconds": SECONDS,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.helpers.abuser"],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asked))
    process.stdin.close()
    process.stdin = None
    return process


def database_bytes(stack: Stack) -> int:
    (row,) = stack.rows("SELECT pg_database_size(current_database()) AS size")
    return int(row["size"])
