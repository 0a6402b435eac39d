"""SFTP to the files of a volume: a channel of a person's connection on this side, the pod of a files session on the
far side. Its bytes pass as those of a tunnel do; the pod alone reads them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import asyncssh
from channels.db import database_sync_to_async
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.errors import Refusal

from . import limits, volumes
from .carry import Behind, Tunnel
from .rights import Person
from .volumes import Served

log = logging.getLogger(__name__)

READY_SECONDS = 120.0
LOOK_SECONDS = 0.5
RECHECK_SECONDS = 20.0

_begin: Callable[..., Any] = database_sync_to_async(volumes.begin)
_ready: Callable[..., Awaitable[Served | None]] = database_sync_to_async(volumes.ready)
_why: Callable[..., Any] = database_sync_to_async(volumes.why_not_ready)
_may_go_on: Callable[..., Any] = database_sync_to_async(volumes.may_go_on)

NO_ANSWER = _("The files cannot be reached at the moment. Try again soon.")


class Files(Tunnel, asyncssh.SSHServerSession[bytes]):  # type: ignore[misc]
    """Session of a channel that asks for SFTP, and for nothing else."""

    def __init__(self, over: Callable[[Tunnel], None], person: Person, address: str) -> None:
        super().__init__(over)
        self._person, self._address = person, address
        self._work: asyncio.Task[None] | None = None
        self._is_used = False
        self._early = b""

    def subsystem_requested(self, subsystem: str) -> bool:
        if subsystem != "sftp" or self.ended or self._channel is None:
            return False
        self._work = asyncio.create_task(self._serve())
        return True

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        self._is_used = True
        if self._far is None and self._channel is not None:  # the pod is not reached yet
            self._early += data
            self._channel.pause_reading()
            return
        super().data_received(data, datatype)

    def end(self) -> None:
        if not self.ended and "near" in self._silent:  # they said goodbye: scp asks for the status
            self._exit(0)
        if self._work is not None and self._work is not asyncio.current_task():
            self._work.cancel()
        super().end()

    async def _serve(self) -> None:
        """Open the volume's files, and stay until the person's right to them ends."""
        try:
            served = await self._opened()
            if served is not None:
                while await self._may_stay(served):  # noqa: ASYNC110 - rows say it, and nothing else
                    await asyncio.sleep(RECHECK_SECONDS)
        except Refusal as refusal:
            self._say(f"{refusal.message} {refusal.hint}")
        except (OSError, TimeoutError, *limits.AWAY):
            self._say(self._in_their_language(NO_ANSWER))
        self.end()

    async def _opened(self) -> Served | None:
        session = await _begin(self._person, self._address)
        deadline = time.monotonic() + READY_SECONDS
        while (served := await _ready(self._person, session)) is None:
            if time.monotonic() > deadline:
                self._say(await _why(self._person, session))
                return None
            await asyncio.sleep(LOOK_SECONDS)
        async with asyncio.timeout(limits.CONNECT_SECONDS):
            _transport, pod = await asyncio.get_running_loop().create_connection(
                Behind, served.host, served.port
            )
            pod.transport.write(served.request)
            if not await pod.is_open:
                pod.leave()
                raise OSError("the pod refused")
        log.info("%s opened the files of volume %s", self._person.username, served.volume_id)
        self._lead(pod)
        return served

    def _lead(self, pod: Behind) -> None:
        self._far = pod
        pod.near = self
        if self.ended or self._channel is None:  # its person left meanwhile
            pod.leave()
            return
        pod.begin()
        pod.transport.write(self._early)
        self._heed_room()
        self._channel.resume_reading()
        if pod.transport.is_closing():
            self.end()

    async def _may_stay(self, served: Served) -> bool:
        is_used, self._is_used = self._is_used, False
        try:
            return bool(await _may_go_on(self._person, served, is_used=is_used))
        except limits.AWAY:
            return True  # nothing changes while the database is away

    def _say(self, text: str) -> None:
        """Tell the person on their terminal, as sftp shows it."""
        channel: Any = self._channel
        if channel is not None and not channel.is_closing():
            channel.write_stderr(f"{text}\r\n".encode())
        self._exit(1)

    def _exit(self, status: int) -> None:
        channel: Any = self._channel
        if channel is not None:
            channel.exit(status)

    def _in_their_language(self, words: Any) -> str:
        with self._person.speaking():
            return gettext(str(words))
