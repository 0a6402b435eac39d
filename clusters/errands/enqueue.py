"""Enqueue an errand, in the current transaction, by dotted name: nothing here imports the task."""

from uuid import UUID

from django_q.tasks import async_task

QUEUE = "errands"
"""Key of their rows in the task queue: workers take them before all other tasks, as somebody waits."""


def run(errand_id: UUID) -> None:
    async_task("clusters.errands.tasks.run", str(errand_id), group="errands", cluster=QUEUE)
