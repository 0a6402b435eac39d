"""Readers of the live sockets that leave, come back, and read slowly. A reader keeps what its client would show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from accounts.access import Actor
from accounts.notices import inbox
from portal.asgi import application
from portal.channel_layer import NotifyLayer
from tests.shared.sockets import headers_of, in_thread
from workspaces import access
from workspaces.api.representation import with_related, workspace_json, workspaces_json
from workspaces.models import Workspace

Frame = dict[str, Any]
SECONDS = 60
# Channel layer of the web process that answers: each process has its own.
LAYER: ContextVar[NotifyLayer] = ContextVar("layer")


def web_processes(count: int, monkeypatch: pytest.MonkeyPatch) -> list[NotifyLayer]:
    """Return `count` channel layers on the one database, as that many web processes have."""
    monkeypatch.setattr("channels.consumer.get_channel_layer", lambda alias: LAYER.get())
    configured: Any = settings.CHANNEL_LAYERS["default"].get("CONFIG", {})
    return [NotifyLayer(**configured) for _ in range(count)]


class Reader:
    """A browser's page: its socket, opened again and again, and what it shows."""

    path: ClassVar[str]

    def __init__(self, actor: Actor, layer: NotifyLayer) -> None:
        self.actor, self.layer = actor, layer
        self.reads = asyncio.Event()
        self.reads.set()
        self.heard = asyncio.Event()

    @property
    def address(self) -> str:
        return self.path

    def hear(self, frame: Frame) -> None:
        raise NotImplementedError

    def as_it_is(self) -> bool:
        """Return True if the page shows what the rows say. Synchronous: it reads the database."""
        raise NotImplementedError

    # --- its socket

    async def opens(self) -> None:
        parts, headers = urlsplit(self.address), await in_thread(headers_of)(self.actor)
        scope = {"type": "websocket", "path": parts.path, "query_string": parts.query.encode()}
        self.inbox: asyncio.Queue[Frame] = asyncio.Queue()
        self.open, opened = True, asyncio.Event()

        async def send(frame: Frame) -> None:
            opened.set()
            await self.reads.wait()  # a slow reader holds up its sender
            if self.open and frame["type"] == "websocket.send":
                self.hear(json.loads(frame["text"]))
                self.heard.set()
            assert not (self.open and frame["type"] == "websocket.close"), frame

        await self.inbox.put({"type": "websocket.connect"})
        serving = self._serve(scope | {"headers": headers, "subprotocols": []}, self.inbox.get, send)
        self.serving = asyncio.create_task(serving)
        await asyncio.wait_for(opened.wait(), SECONDS)

    async def _serve(self, scope: Frame, receive: Callable[[], Awaitable[Frame]], send: Any) -> None:
        LAYER.set(self.layer)
        await application(scope, receive, send)

    async def leaves(self) -> None:
        self.open = False
        await self.inbox.put({"type": "websocket.disconnect", "code": 1006})
        self.reads.set()
        await asyncio.wait_for(self.serving, SECONDS)

    async def comes_back(self) -> None:
        await self.leaves()
        await self.opens()

    async def until_as_it_is(self) -> None:
        async with asyncio.timeout(SECONDS):
            while True:
                self.heard.clear()  # before it looks: what is heard meanwhile is looked at again
                if await in_thread(self.as_it_is)():
                    return
                await self.heard.wait()


class StoryReader(Reader):
    """A workspace's own page: it goes on after the last event that it has."""

    def __init__(self, actor: Actor, layer: NotifyLayer, workspace: Workspace, after: int) -> None:
        super().__init__(actor, layer)
        self.workspace, self.after = workspace, after
        self.numbers: list[int] = []
        self.shown: Frame = {}

    @property
    def address(self) -> str:
        last = self.numbers[-1] if self.numbers else self.after
        return f"/ws/workspaces/{self.workspace.pk}/?after={last}"

    def hear(self, frame: Frame) -> None:
        if frame["type"] == "event":
            self.numbers.append(frame["event"]["id"])
            expected = list(range(self.after + 1, self.after + 1 + len(self.numbers)))
            assert self.numbers == expected, f"after {self.after}: {self.numbers}"
        elif frame["type"] == "workspace":
            self.shown = frame["workspace"]
            last = self.numbers[-1] if self.numbers else self.after
            assert self.shown["last_event"] <= max(last, self.after), "a state before its events"

    def as_it_is(self) -> bool:
        row = access.get(self.actor, self.workspace.pk)
        last = self.numbers[-1] if self.numbers else self.after
        return last == max(row.last_event, self.after) and self.shown == workspace_json(row, self.actor)


class ListReader(Reader):
    path = "/ws/workspaces/"

    def __init__(self, actor: Actor, layer: NotifyLayer) -> None:
        super().__init__(actor, layer)
        self.shown: dict[str, Frame] = {}

    def hear(self, frame: Frame) -> None:
        if frame["type"] == "snapshot":
            self.shown = {row["id"]: row for row in frame["workspaces"]}
        elif frame["type"] == "workspace":
            self.shown[frame["workspace"]["id"]] = frame["workspace"]

    def as_it_is(self) -> bool:
        rows = with_related(access.visible(self.actor)).filter(deleted_at__isnull=True)
        shown = dict(self.shown)  # it goes on hearing in its own thread
        there = {pk: row for pk, row in shown.items() if row["deleted_at"] is None}
        return there == {row["id"]: row for row in workspaces_json(rows, self.actor)}


class NoticeReader(Reader):
    path = "/ws/notices/"

    async def opens(self) -> None:
        self.unread: int | None = None
        self.told: list[str] = []
        await super().opens()

    def hear(self, frame: Frame) -> None:
        if frame["type"] == "unread":
            self.unread = frame["unread"]
        elif frame["type"] == "notice":
            self.told.append(frame["notice"]["id"])
            assert len(set(self.told)) == len(self.told), "a notice was told twice"

    def as_it_is(self) -> bool:
        fresh = {str(notice.pk) for notice, _words in inbox.fresh(self.actor.user)}
        return self.unread == inbox.unread(self.actor.user) and fresh <= set(self.told)
