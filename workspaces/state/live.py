"""Change a workspace's row under its lock: row, new events and the call to open pages in one transaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from uuid import UUID

from django.db import transaction

from accounts.live import publish_to_all
from accounts.locks import locked
from workspaces.models import Event, Workspace

RELATED = ("tenant", "owner", "image", "pool__cluster", "flavor")
_tellers: list[Callable[[Event], None]] = []


def register(teller: Callable[[Event], None]) -> None:
    """Call this for each new event, once it is written, in the transaction that wrote it."""
    _tellers.append(teller)


def announce(workspace: Workspace) -> None:
    """Wake the pages that show the workspace: its own page, its tenant's lists, the admins' lists."""
    groups = [f"workspace.{workspace.pk}", f"tenant.{workspace.tenant_id}", "staff"]
    publish_to_all(groups, {"type": "workspace.changed", "id": str(workspace.pk)})


@contextmanager
def changing(workspace_id: UUID) -> Iterator[Workspace]:
    """Yield the row, locked; at the end save what differs, write its new events and announce them. Four statements.

    It makes no savepoint: an exception from here ends the caller's whole transaction.
    """
    with transaction.atomic(savepoint=False):
        workspace = locked(Workspace.objects.all()).get(pk=workspace_id)
        before = _values(workspace)
        yield workspace
        now = vars(workspace)
        if changed := [name for name, value in before.items() if now[name] != value]:
            workspace.save(update_fields=[*changed, "changed_at"])
            write_events(workspace)
            announce(workspace)


def write_events(workspace: Workspace) -> None:
    """Write the events that `add_event` collected on a saved row, in one statement."""
    events = list(workspace.new_events)
    workspace.new_events.clear()
    Event.objects.bulk_create(events)
    for event in events:
        for tell in _tellers:
            tell(event)


def _values(workspace: Workspace) -> dict[str, object]:
    values = vars(workspace)
    return {
        field.attname: deepcopy(value) if isinstance(value := values[field.attname], dict | list) else value
        for field in workspace._meta.concrete_fields
    }
