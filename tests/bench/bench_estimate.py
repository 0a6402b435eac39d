"""POST estimate/ for a pool with 64 nodes of 8 GPUs where 200 wait, and three more pools; one after the other"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection
from typing import Any

from tests.bench import Figure
from tests.bench.helpers.parts import ask_often, call, installation, serving

BODY: dict[str, Any] = {"tenant": "demo", "name": "exp-1", "image": "jupyter"}
ASKED: dict[str, dict[str, Any]] = {
    "8 GPUs, waits; what starts instead": {"pool": "a100", "gpus": 8},
    "1 GPU for an hour, waits; what starts instead": {"pool": "a100", "gpus": 1, "max_runtime_minutes": 60},
    "1 GPU of another pool, starts now": {"pool": "pool-2", "gpus": 1},
    "a GPU by need": {"gpu": {"min_memory_mib": 40_000}},
}


def measure() -> Iterator[Figure]:
    with installation() as (_folder, environ), serving(environ) as (web, port):
        token = call(environ, "full_pool.seed")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection = HTTPConnection("127.0.0.1", port)

        def ask(body: dict[str, Any]) -> None:
            connection.request("POST", "/api/v1/estimate/", json.dumps(body), headers)
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status == 200, said

        for what, size in ASKED.items():
            yield ask_often(what, web, partial(ask, BODY | size))
