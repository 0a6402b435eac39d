"""Websockets that follow workspaces or jobs: all that a person may see, or one with its events."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from channels.db import database_sync_to_async

from accounts.access import visible_tenants
from accounts.errors import NotThere

from . import groups
from .reads import EVENTS_AT_ONCE, Kind
from .sockets import Json, Live, query

SNAPSHOT_LIMIT = 500


class Following(Live):
    """Base of sockets that a change of a row of this kind wakes."""

    kind: ClassVar[Kind[Any]]

    async def changed(self, message: Json) -> None:
        self.wake()

    workspace_changed = job_changed = changed


class ListOf(Following):
    """Rows that the person may see: a snapshot, then each row that changes."""

    async def connect(self) -> None:
        self.to_send: set[UUID] | None = None  # None: all, as a snapshot
        await super().connect()

    def groups_to_hear(self) -> set[str]:
        tenants = visible_tenants(self.actor).values_list("pk", flat=True)
        if self.actor.is_admin and not (self.actor.token and self.actor.token.tenant_id):
            return {groups.of_staff(self.kind.name)}
        return {groups.of_tenant(self.kind.name, tenant) for tenant in tenants}

    async def send_changes(self) -> None:
        to_send, self.to_send = self.to_send, set()
        if to_send is None:
            await self.send_json(await database_sync_to_async(self.snapshot)())
        elif to_send:
            for frame in await self.kind.changed((self.actor, to_send)):
                await self.send(frame)

    def snapshot(self) -> Json:
        rows = list(self.kind.listed(self.actor)[: SNAPSHOT_LIMIT + 1])
        describe = self.kind.describing(rows[:SNAPSHOT_LIMIT])
        return {
            "type": "snapshot",
            f"{self.kind.name}s": [describe(row, self.actor) for row in rows[:SNAPSHOT_LIMIT]],
            "truncated": len(rows) > SNAPSHOT_LIMIT,
        }

    async def changed(self, message: Json) -> None:
        if self.to_send is not None:
            self.to_send.add(UUID(message["id"]))
        self.wake()

    workspace_changed = job_changed = changed

    async def resync(self, message: Json) -> None:
        self.to_send = None
        self.wake()

    async def access_changed(self, message: Json) -> None:
        self.to_send = None
        await super().access_changed(message)


class OfOne(Following):
    """Base of sockets about the row in the address, for people who may see it."""

    @property
    def id(self) -> UUID:
        found: UUID = self.scope["url_route"]["kwargs"]["id"]
        return found

    def groups_to_hear(self) -> set[str]:
        self.kind.get(self.actor, self.id)
        return {groups.of_row(self.kind.name, self.id)}


class One(OfOne):
    """Row and its events after `?after=N`, in order, none twice."""

    async def connect(self) -> None:
        after = query(self.scope).get("after", "")
        self.after = int(after) if after.isdecimal() and len(after) < 10 else 0
        self.sent = ""
        await super().connect()

    async def send_changes(self) -> None:
        while True:
            found = await self.kind.story((self.actor, self.id, self.after))
            if isinstance(found, NotThere):
                raise found
            row, events = found
            for number, frame in events:
                await self.send(frame)
                self.after = number
            if len(events) < EVENTS_AT_ONCE:
                break
        if row != self.sent:
            await self.send(row)
            self.sent = row
