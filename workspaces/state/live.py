"""Change a workspace's row under its lock, and notify open pages when the change is committed."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from uuid import UUID

from django.db import transaction

from accounts.live import publish_to_all
from accounts.locks import locked
from workspaces.models import Workspace

RELATED = ("tenant", "owner", "image", "pool__cluster", "flavor")


def announce(workspace: Workspace) -> None:
    """Wake the pages that show the workspace: its own page, its tenant's lists, the admins' lists."""
    groups = [f"workspace.{workspace.pk}", f"tenant.{workspace.tenant_id}", "staff"]
    publish_to_all(groups, {"type": "workspace.changed", "id": str(workspace.pk)})


@contextmanager
def changing(workspace_id: UUID) -> Iterator[Workspace]:
    """Yield the row, locked; save and announce what differs at the end, in the same transaction."""
    with transaction.atomic():
        workspace = locked(Workspace.objects.all()).get(pk=workspace_id)
        before = _values(workspace)
        yield workspace
        after = _values(workspace)
        if changed := [name for name in after if after[name] != before[name]]:
            workspace.save(update_fields=[*changed, "changed_at"])
            announce(workspace)


def _values(workspace: Workspace) -> dict[str, object]:
    values = {field.attname: getattr(workspace, field.attname) for field in workspace._meta.concrete_fields}
    return {name: deepcopy(value) if isinstance(value, dict) else value for name, value in values.items()}
