"""POST estimate/ for a pool with 64 nodes of 8 GPUs where 200 wait, and three more pools; one after the other"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from statistics import median, quantiles
from typing import Any

from tests.bench import Figure
from tests.bench.helpers.parts import cpu_seconds, installation, manage, serving

RUNS = 3
TIMES = 30
SEED = "from tests.bench.full_pool import seed; seed()"
BODY: dict[str, Any] = {"tenant": "demo", "name": "exp-1", "image": "jupyter"}
ASKED: dict[str, dict[str, Any]] = {
    "8 GPUs, waits; what starts instead": {"pool": "a100", "gpus": 8},
    "1 GPU for an hour, waits; what starts instead": {"pool": "a100", "gpus": 1, "max_runtime_minutes": 60},
    "1 GPU of another pool, starts now": {"pool": "pool-2", "gpus": 1},
    "a GPU by need": {"gpu": {"min_memory_mib": 40_000}},
}


def measure() -> Iterator[Figure]:
    with ExitStack() as stack:
        _folder, environ = stack.enter_context(installation())
        web, port = stack.enter_context(serving(environ))
        manage(environ, "shell", "-c", SEED)
        token = manage(environ, "issue_token", "bob", "--scopes", "read").split()[-1]
        connection = HTTPConnection("127.0.0.1", port)
        for what, size in ASKED.items():
            yield ask_often(what, connection, web, token, BODY | size)


def ask_often(what: str, connection: HTTPConnection, web: int, token: str, body: dict[str, Any]) -> Figure:
    """Return the p95 of the worst run."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask() -> float:
        began = time.monotonic()
        connection.request("POST", "/api/v1/estimate/", json.dumps(body), headers)
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == 200, said
        return (time.monotonic() - began) * 1000

    ask()
    cpu = cpu_seconds(web)
    runs = [sorted(ask() for _ in range(TIMES)) for _ in range(RUNS)]
    cpu = (cpu_seconds(web) - cpu) * 1000 / RUNS / TIMES
    p95 = max(quantiles(run, n=20)[18] for run in runs)
    beside = f"ms; p50 {median(runs[-1]):.1f}, CPU of web {cpu:.1f}"
    return Figure(f"{what}: p95", p95, beside)
