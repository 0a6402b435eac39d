"""Change a workspace's row under its lock: row, new events and the call to open pages in one transaction."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from uuid import UUID

from workloads.changing import changing as workloads_changing
from workloads.live import groups
from workspaces.models import Event, Workspace

RELATED = ("tenant", "owner", "image", "pool__cluster", "flavor")
_tellers: list[Callable[[Event], None]] = []


def register(teller: Callable[[Event], None]) -> None:
    """Call this for each new event, once it is written, in the transaction that wrote it."""
    _tellers.append(teller)


def announce(workspace: Workspace) -> None:
    """Wake the pages that show the workspace: its own page, its tenant's lists, the admins' lists."""
    groups.announce("workspace", workspace)


def changing(workspace_id: UUID) -> AbstractContextManager[Workspace]:
    """Yield the row, locked; at the end save what differs, write its new events and announce them. Four statements."""
    return workloads_changing(Workspace, workspace_id, _written)


def _written(workspace: Workspace) -> None:
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
