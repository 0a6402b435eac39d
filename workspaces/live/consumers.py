"""Websockets of workspaces: all that a person may see, one with its events, and one's log."""

from __future__ import annotations

from workloads.live.following import ListOf, OfOne, One
from workloads.live.reads import Kind
from workloads.logs.sockets import LogOf
from workspaces import access
from workspaces.api.representation import describing, event_json, joined, seen_as, with_related
from workspaces.models import Workspace

WORKSPACES = Kind(
    name="workspace",
    joined=lambda ids: joined(Workspace.objects.filter(pk__in=ids)),
    listed=lambda actor: with_related(access.visible(actor)).filter(deleted_at__isnull=True),
    describing=describing,
    get=access.get,
    require_there=access.require_there,
    event_json=event_json,
    seen_as=seen_as,
)


class WorkspaceList(ListOf):
    kind = WORKSPACES


class OfWorkspace(OfOne):
    kind = WORKSPACES


class OneWorkspace(One):
    kind = WORKSPACES


class WorkspaceLog(LogOf):
    kind = WORKSPACES

    def may_read(self, row: Workspace) -> bool:
        return access.may_read_log(self.actor, row)
