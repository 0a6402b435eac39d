"""Tasks that the worker runs; `enqueue.py` enqueues them."""

from uuid import UUID

from .runs import reconcile as reconciling


def reconcile(workspace_id: str) -> None:
    reconciling.reconcile(UUID(workspace_id))
