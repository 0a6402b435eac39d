"""Websocket of a log: its last lines, or those after a place, then each line as it is stored."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from django.utils.translation import gettext as _

from accounts.access import not_there
from workloads.figures import moment
from workloads.live.following import OfOne
from workloads.live.sockets import Json, query

from .reading import Cursor, Shown
from .store import group_of
from .tailing import Tail

LONGEST_NUMBER = 9  # digits


class LogOf(OfOne):
    """Base of the logs of workspaces and jobs: `start`, then a frame for each line; `note` while there is none."""

    def may_read(self, row: Any) -> bool:
        """Return True if the actor may read the log of this row."""
        raise NotImplementedError

    async def connect(self) -> None:
        asked = query(self.scope)
        self._after = Cursor.of(asked.get("after", ""))
        chosen = {name: _number(asked.get(name, "")) for name in ("index", "attempt")}
        self._tail = Tail(self.id, chosen | {"run": _uuid(asked.get("run", ""))})
        self._has_begun = False
        await super().connect()

    def groups_to_hear(self) -> set[str]:
        row = self.kind.get(self.actor, self.id)
        if not self.may_read(row):
            raise not_there()
        return {group_of(self.id)}

    async def send_changes(self) -> None:
        if not self._has_begun:
            await self._begin()
        while not self._recheck and (lines := await database_sync_to_async(self._tail.more)()):
            await self._send(lines)

    async def _begin(self) -> None:
        self._has_begun = True
        await self.send_json({"type": "start"})
        if self._after is None:
            await self._send(await database_sync_to_async(self._tail.first)())
        while self._after is not None:
            lines, self._after = await database_sync_to_async(self._tail.after)(self._after)
            await self._send(lines)
        if self._tail.is_empty:
            await self.send_json({"type": "note", "message": _("Nothing was written yet.")})

    async def _send(self, lines: list[Shown]) -> None:
        """Send one line after the other: each waits until the client took those before."""
        for line in lines:
            await self.send_json({"type": "line", **line_json(line)})

    async def log_grew(self, message: Json) -> None:
        self.wake()


def line_json(line: Shown) -> Json:
    return {
        "line": line.text,
        "at": moment(line.at),
        "run": str(line.run),
        "index": line.index,
        "attempt": line.attempt,
        "number": line.number,
        "after": str(line.cursor),
    }


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
