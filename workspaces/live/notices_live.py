"""Websocket of a person's notices: the number of unread ones, and each new one in words, for the browser to show.

{"type": "unread", "unread": 2}
{"type": "notice", "notice": {"id", "kind", "at", "title", "text", "path"}}
"""

from __future__ import annotations

from channels.db import database_sync_to_async

from accounts.notices import inbox, words
from accounts.notices.notifying import group_of
from workloads.live.sockets import Json, Live


class Notices(Live):
    async def connect(self) -> None:
        self.unread: int | None = None
        self.sent: set[str] = set()
        await super().connect()

    def groups_to_hear(self) -> set[str]:
        self.actor.require_whole_person()
        return {group_of(self.actor.user.pk)}

    async def send_changes(self) -> None:
        unread, fresh = await database_sync_to_async(self.read)()
        for notice in fresh:
            if notice["id"] not in self.sent:
                self.sent.add(notice["id"])
                await self.send_json({"type": "notice", "notice": notice})
        if unread != self.unread:
            self.unread = unread
            await self.send_json({"type": "unread", "unread": unread})

    def read(self) -> tuple[int, list[Json]]:
        user = self.actor.user
        with words.read_by(user):
            fresh = [
                {
                    "id": str(notice.pk),
                    "kind": notice.kind,
                    "at": notice.at.isoformat(),
                    "title": found.title,
                    "text": found.text,
                    "path": found.path,
                }
                for notice, found in inbox.fresh(user)
            ]
        return inbox.unread(user), fresh

    async def notices_changed(self, message: Json) -> None:
        self.wake()
