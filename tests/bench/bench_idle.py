"""CPU of each part of a trial that nobody uses (played pods): with nothing, and with 50 ready workspaces"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from tests.bench import Figure
from tests.bench.helpers.parts import (
    CPU_NODES,
    cpu_of,
    memory_mib,
    processes_of,
    spent,
    trial,
    wait_until_ready,
)
from tests.e2e.stack import Stack

RUNS = 3
SECONDS = 20
SETTLING_SECONDS = 6
READY = 50
STATEMENTS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


def measure() -> Iterator[Figure]:
    with trial(CPU_NODES) as stack:
        yield from _idle(stack, "with nothing")
        _launch(stack)
        yield from _idle(stack, f"with {READY} ready workspaces")
        for part, pids in processes_of(stack).items():
            mib = [memory_mib(pid) for pid in pids if Path(f"/proc/{pid}").exists()]
            yield Figure(f"memory of {part}", sum(mib), f"MiB in {len(mib)} processes")


def _idle(stack: Stack, what: str) -> Iterator[Figure]:
    time.sleep(SETTLING_SECONDS)
    for run in range(1, RUNS + 1):
        pids = processes_of(stack)
        before, transactions, began = cpu_of(pids), _transactions(stack), time.monotonic()
        time.sleep(SECONDS)
        took, after = time.monotonic() - began, cpu_of(pids)
        transactions = _transactions(stack) - transactions
        for part, seconds in spent(before, after).items():
            yield Figure(f"{what}, run {run}: {part}", seconds / took * 100, "% of a core")
        yield Figure(f"{what}, run {run}: transactions", transactions / took * 60, "a minute")


def _transactions(stack: Stack) -> int:
    folder = stack.folder / "run" / "postgres"
    with psycopg.connect(host=str(folder), user="berth", dbname="berth") as connection:
        row = connection.execute(STATEMENTS).fetchone()
        assert row is not None
        return int(row[0])


def _launch(stack: Stack) -> None:
    api = stack.client(stack.token("alice", "read", "workspaces"))

    def launch(number: int) -> None:
        size = {"pool": "cpu", "cpu": 1, "memory_mib": 1024}
        status, answer = api(
            "POST", "workspaces/", {"tenant": "demo", "name": f"run-{number}", "image": "jupyter", **size}
        )
        assert status == 201, answer

    with ThreadPoolExecutor(8) as people:
        list(people.map(launch, range(READY)))
    wait_until_ready(stack, READY)
