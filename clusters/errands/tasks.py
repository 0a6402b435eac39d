"""Task that the worker runs; `enqueue.py` enqueues it."""

from uuid import UUID

from clusters.errands import running


def run(errand_id: str) -> None:
    running.run(UUID(errand_id))
