"""Websocket of a workspace's Metrics tab: figures as they come."""

from __future__ import annotations

import asyncio
import time

from django.conf import settings

from accounts.errors import NotThere
from monitoring.figures.series import DEFAULT
from monitoring.following import FiguresRequest, figures, is_window
from workloads.live.sockets import query
from workspaces.live.consumers import OfWorkspace

# The interval at which agents report.
BEAT_SECONDS = 5


class WorkspaceFigures(OfWorkspace):
    """Figures of `?window=15m&language=ko`: the whole window first, then changes since the newest point sent.

    `since` in a frame is the time of that point: the client replaces everything from there on.
    """

    async def connect(self) -> None:
        asked = query(self.scope).get("window", DEFAULT)
        self.window = asked if is_window(asked) else DEFAULT
        # Language of the open page: a person may have left the choice to the browser.
        language = query(self.scope).get("language", "")
        self.language = language if language in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
        self.newest: int | None = None
        self.last_frame = ""
        self.step_seconds = BEAT_SECONDS
        await super().connect()
        self.start(self._beat())

    async def send_changes(self) -> None:
        request = FiguresRequest(self.actor, self.id, self.window, self.newest, self.language)
        found = await figures(request)
        if isinstance(found, NotThere):
            raise found
        self.step_seconds = found.step_seconds
        if found.frame != self.last_frame:
            await self.send(found.frame)
            self.last_frame, self.newest = found.frame, found.newest

    async def _beat(self) -> None:
        """Wake at moments that all sockets of a process share, so that one read serves them all."""
        while True:
            pause = max(BEAT_SECONDS, self.step_seconds)
            await asyncio.sleep(pause - time.time() % pause)
            self.wake()
