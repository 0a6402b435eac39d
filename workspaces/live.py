"""Change a workspace's row under its lock, and tell open pages when the change is committed."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from uuid import UUID

from django.db import transaction

from accounts.live import publish

from .models import Workspace

RELATED = ("tenant", "owner", "image", "pool__cluster", "flavor")


def announce(workspace: Workspace) -> None:
    """Wake whoever shows it: its own page, its tenant's lists, the admins' lists."""
    message = {"type": "workspace.changed", "id": str(workspace.pk)}
    for group in (f"workspace.{workspace.pk}", f"tenant.{workspace.tenant_id}", "staff"):
        publish(group, message)


@contextmanager
def changing(workspace_id: UUID) -> Iterator[Workspace]:
    """The row, locked; saved and announced at the end, in the same transaction, if it differs."""
    with transaction.atomic():
        rows = Workspace.objects.select_for_update(of=("self",)).select_related(*RELATED)
        workspace = rows.get(pk=workspace_id)
        before = _values(workspace)
        yield workspace
        if _values(workspace) != before:
            workspace.save()
            announce(workspace)


def _values(workspace: Workspace) -> dict[str, object]:
    return {f.attname: deepcopy(getattr(workspace, f.attname)) for f in workspace._meta.concrete_fields}
