"""Enqueue what quotas/tasks.py runs, in the current transaction, by dotted name: nothing here imports it."""

from uuid import UUID

from django_q.tasks import async_task


def admission_pass(pool_id: UUID) -> None:
    async_task("quotas.tasks.admission_pass", str(pool_id), group="admission")


def look_at_spending() -> None:
    async_task("quotas.tasks.look_at_spending", group="spending")
