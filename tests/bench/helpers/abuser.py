"""An abusive member: one token at full speed from 16 connections. `python -m tests.bench.helpers.abuser`, with figures
as JSON on stdin and on stdout, so that its work does not delay whoever measures."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import aiohttp

CONNECTIONS = 16
MOST_SOCKETS = 300
LOG_SECONDS = 2.0
PATIENCE_SECONDS = 60
LARGE = "x" * (255 * 2**10)


class Abuser:
    def __init__(self, address: str, token: str, workspace: str, foreign: str) -> None:
        self._address, self._token = address, token
        self._mine, self._foreign = f"workspaces/{workspace}/", f"workspaces/{foreign}/"
        self.counts: Counter[str] = Counter()
        self._sockets: list[aiohttp.ClientWebSocketResponse] = []
        self._deeds: list[Callable[[], Awaitable[None]]] = [
            self._lists,
            self._launches_unknown_fields,
            self._launches_large,
            self._refused_writes,
            self._keys,
            self._exports,
            self._reads_log,
            self._opens_socket,
            self._tickets,
        ]

    async def run(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers={"Authorization": f"Bearer {self._token}"},
            timeout=aiohttp.ClientTimeout(total=PATIENCE_SECONDS),
        ) as self._http:
            await asyncio.gather(*(self._connection(number, ends) for number in range(CONNECTIONS)))
            await asyncio.gather(*(wire.close() for wire in self._sockets), return_exceptions=True)

    async def _connection(self, seed: int, ends: float) -> None:
        chance = random.Random(seed)
        while time.monotonic() < ends:
            deed = chance.choice(self._deeds)
            try:
                await deed()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                self.counts[f"{deed.__name__.strip('_')} {type(error).__name__}"] += 1

    async def _ask(self, what: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
        async with self._http.request(
            method, f"{self._address}/api/v1/{path}", json=body, headers=headers
        ) as answer:
            self.counts[f"{what} {answer.status}"] += 1
            content = await answer.read()
            return json.loads(content) if answer.content_type == "application/json" else content

    async def _lists(self) -> None:
        path = random.choice(("workspaces", "images", "flavors", "pools", "tokens"))
        await self._ask("lists", "GET", f"{path}/?search={uuid4().hex[:3]}&limit=500")

    async def _launches_unknown_fields(self) -> None:
        body = {f"unknown_{number}": LARGE[:100] for number in range(500)}
        await self._ask("unknown fields", "POST", "workspaces/", body)

    async def _launches_large(self) -> None:
        await self._ask("256 KiB", "POST", "workspaces/", {"tenant": "team-1", "name": LARGE})

    async def _refused_writes(self) -> None:
        await self._ask("refused writes", "POST", f"{self._foreign}stop/", {})
        body = {"name": "wide", "scopes": ["admin"], "days": 1}
        await self._ask("refused writes", "POST", "tokens/", body)

    async def _keys(self) -> None:
        key = {"Idempotency-Key": uuid4().hex}
        await self._ask("idempotency keys", "POST", "workspaces/", {"tenant": uuid4().hex}, **key)

    async def _exports(self) -> None:
        await self._ask("exports", "GET", "usage/?format=csv")

    async def _reads_log(self) -> None:
        address = f"{self._address}/api/v1/{self._mine}logs/?follow=true&tail=10000"
        async with self._http.get(address) as answer:
            self.counts[f"logs {answer.status}"] += 1
            try:
                async with asyncio.timeout(LOG_SECONDS):
                    await answer.read()
            except TimeoutError:
                pass

    async def _opens_socket(self) -> None:
        made = await self._ask("tickets for sockets", "POST", "ws-tickets/", {})
        if "ticket" not in made or len(self._sockets) >= MOST_SOCKETS:
            return
        wire = await self._http.ws_connect(
            f"{self._address}/ws/workspaces/?token={made['ticket']}", headers={"Origin": self._address}
        )
        first = await wire.receive(PATIENCE_SECONDS)
        if first.type == aiohttp.WSMsgType.TEXT:
            self.counts["sockets open"] += 1
            self._sockets.append(wire)
        else:
            self.counts[f"sockets {wire.close_code}"] += 1
            await wire.close()

    async def _tickets(self) -> None:
        await self._ask("tickets", "POST", "ws-tickets/", {})


def main() -> None:
    asked = json.loads(sys.stdin.read())
    seconds = asked.pop("seconds")
    abuser = Abuser(**asked)
    asyncio.run(abuser.run(seconds))
    print(json.dumps(abuser.counts))


if __name__ == "__main__":
    main()
