"""What the worker runs for workspaces; `enqueue.py` has it run."""

from uuid import UUID

from . import reconcile as reconciling


def reconcile(workspace_id: str) -> None:
    reconciling.reconcile(UUID(workspace_id))
