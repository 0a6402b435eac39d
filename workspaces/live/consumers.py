"""Websockets of workspaces: all that a person may see, one with its events, and one's log."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from channels.db import database_sync_to_async

from accounts.access import not_there
from accounts.errors import NotSignedIn, NotThere, Refusal, TooMany
from workloads.live.following import ListOf, OfOne, One
from workloads.live.reads import Kind
from workloads.live.sockets import Json
from workspaces import access
from workspaces.api.representation import describing, event_json, joined, with_related
from workspaces.cluster import logs
from workspaces.models import Event, Workspace

LOG_RETRY_SECONDS = 2

WORKSPACES = Kind(
    name="workspace",
    joined=lambda ids: joined(Workspace.objects.filter(pk__in=ids)),
    listed=lambda actor: with_related(access.visible(actor)).filter(deleted_at__isnull=True),
    describing=describing,
    get=access.get,
    require_there=access.require_there,
    is_own=access.is_own,
    events=lambda pk: Event.objects.filter(workspace=pk),
    event_json=event_json,
)


class WorkspaceList(ListOf):
    kind = WORKSPACES


class OfWorkspace(OfOne):
    kind = WORKSPACES


class OneWorkspace(One):
    kind = WORKSPACES


class WorkspaceLog(OfWorkspace):
    """Log, followed over restarts: `start` before its last lines are sent again, `note` if there is no log."""

    log: logs.Log | None = None

    def groups_to_hear(self) -> set[str]:
        self.readable()
        return super().groups_to_hear()

    def readable(self) -> Workspace:
        workspace = access.get(self.actor, self.id)
        if not access.may_manage(self.actor, workspace):
            raise not_there()
        return workspace

    def open(self) -> logs.Log:
        return logs.open_log(self.readable(), self.actor.user.pk, follow=True)

    async def send_changes(self) -> None:
        try:
            self.log = await database_sync_to_async(self.open)()
            if self._recheck:  # access changed while it was opened
                self.log.close()
        except (NotThere, NotSignedIn):
            raise
        except Refusal as refusal:
            await self.send_json({"type": "note", "message": refusal.message, "hint": refusal.hint})
            if isinstance(refusal, TooMany):
                raise
            if refusal.retry_after_seconds is None:
                return  # the workspace's next change wakes
        else:
            await self.send_json({"type": "start"})
            async with aclosing(aiter(self.log)) as lines:
                async for line in lines:
                    await self.send_json({"type": "line", "line": line.rstrip("\n")})
        self.start(self._wake_later())

    async def _wake_later(self) -> None:
        """Wake the sender later: the container may have restarted in place, or the cluster be back."""
        await asyncio.sleep(LOG_RETRY_SECONDS)
        self.wake()

    async def access_changed(self, message: Json) -> None:
        await super().access_changed(message)
        self._end_reading()

    async def disconnect(self, code: int) -> None:
        await super().disconnect(code)
        self._end_reading()

    def _end_reading(self) -> None:
        if self.log is not None:
            self.log.close()
