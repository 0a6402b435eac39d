"""Threads that keep a database connection each over many batches, in place of concurrent Berth processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from django.db import connections
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

LONGEST_SECONDS = 60
Job = Callable[[], Any]


def on_its_own(work: Job) -> Any:
    """Run `work` as a separate process would: close the thread's database connections afterwards."""
    try:
        return work()
    finally:
        connections.close_all()


class Crew:
    def __init__(self, size: int) -> None:
        self.size = size
        self._threads = ThreadPoolExecutor(size)

    def at_once(self, jobs: Sequence[Job], meanwhile: Job = lambda: None) -> list[Future[Any]]:
        """Start the jobs together and wait for all; call `meanwhile` repeatedly until then."""
        together = threading.Barrier(len(jobs))

        def begin(job: Job) -> Any:
            together.wait(LONGEST_SECONDS)
            return job()

        running = [self._threads.submit(begin, job) for job in jobs]
        while wait(running, timeout=0.003).not_done:
            meanwhile()
        return running

    def leave(self) -> None:
        for closed in self.at_once([connections.close_all] * self.size):
            closed.result()
        self._threads.shutdown()


@contextmanager
def crew(size: int) -> Iterator[Crew]:
    threads = Crew(size)
    try:
        yield threads
    finally:
        threads.leave()


def play_examples(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=False,
        phases=[Phase.generate],  # shrinking would take minutes: threads never repeat exactly
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=options)
