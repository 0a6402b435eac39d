"""What the worker runs for monitoring, and how it is enqueued: the only module here that knows the task queue."""

from uuid import UUID

from django_q.tasks import async_task


def enqueue_look(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.look", str(cluster_id), group="drift")


def look(cluster_id: str) -> None:
    from monitoring import looks

    looks.look(UUID(cluster_id))
