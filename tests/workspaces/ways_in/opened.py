"""Everything that one credential opened through Berth, to be waited for until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
from django.conf import settings
from django.test import Client

from tests.workspaces.ways_in.gateway_stage import Stage

WITHIN_SECONDS = 10
OVER = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)


class Opened:
    """Everything that one credential opened, each as something to wait for until it has ended."""

    def __init__(self, stage: Stage, stack: AsyncExitStack) -> None:
        self._stage, self._stack = stage, stack
        self.ends: dict[str, Awaitable[Any]] = {}

    def at_berth(self, path: str) -> str:
        return f"http://localhost:{self._stage.port}{path}"

    def of_session(self, client: Client) -> dict[str, str]:
        """Return what a browser of this session sends along from Berth's own pages."""
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        return {
            "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}",
            "Origin": self.at_berth("").rstrip("/"),
        }

    async def websocket(self, name: str, address: str, headers: dict[str, str]) -> None:
        opened = self._stage.browser.ws_connect(address, headers=headers)
        socket = await self._stack.enter_async_context(opened)
        await socket.receive_json()

        async def end() -> None:
            while (await socket.receive()).type not in OVER:  # also after a failed test has closed it
                pass

        self.ends[name] = end()

    async def stream(self, name: str, address: str, headers: dict[str, str], **options: Any) -> None:
        answer = await self._stack.enter_async_context(
            self._stage.browser.get(address, headers=headers, **options)
        )
        assert answer.status == 200, await answer.text()
        assert await answer.content.readany()

        async def end() -> None:
            try:
                while await answer.content.readany():
                    pass
            except aiohttp.ClientPayloadError:  # cut off, and not taken for whole
                pass

        self.ends[name] = end()

    async def upload(self, name: str, address: str, headers: dict[str, str]) -> None:
        begun = asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            yield b"x" * 1000
            begun.set()
            await asyncio.Event().wait()

        async def send() -> None:
            try:
                async with self._stage.browser.put(address, headers=headers, data=pieces()) as answer:
                    assert answer.status != 200
            except aiohttp.ClientError:
                pass

        self.ends[name] = sending = asyncio.ensure_future(send())
        self._stack.callback(sending.cancel)
        await begun.wait()

    async def have_ended(self, *names: str, seconds: float = WITHIN_SECONDS) -> None:
        found = {name: self.ends.pop(name) for name in names or tuple(self.ends)}
        ends = {name: asyncio.ensure_future(end) for name, end in found.items()}
        _done, open_still = await asyncio.wait(ends.values(), timeout=seconds)
        assert not [name for name, end in ends.items() if end in open_still]


async def at_jupyter(opened: Opened, stage: Stage, headers: dict[str, str]) -> None:
    await opened.websocket("kernel", stage.at("/socket"), headers)
    await opened.stream("download", stage.at("/endless"), headers)
    await opened.upload("upload", stage.at("/api/contents/x"), headers)
