"""Tasks of the worker for quotas, and how to enqueue them: the only module here that knows the task queue."""

from uuid import UUID

from django_q.tasks import async_task


def enqueue_pass(pool_id: UUID) -> None:
    async_task("quotas.tasks.admission_pass", str(pool_id), group="admission")


def admission_pass(pool_id: str) -> None:
    from quotas import admission, foretelling

    admission.admit(UUID(pool_id))
    foretelling.foretell(UUID(pool_id))


def enqueue_spending() -> None:
    async_task("quotas.tasks.look_at_spending", group="spending")


def look_at_spending() -> None:
    from quotas.accounting import spending

    spending.look()
