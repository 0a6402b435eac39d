"""Carry contents of files between a person and the pod of a files session, piece by piece: none is held whole.

The view decides: the door lets it answer without the body. If the view left an errand, the door carries; else its
answer goes out as it is.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

import aiohttp
from channels.db import database_sync_to_async
from django.utils import translation
from django.utils.translation import gettext as _
from yarl import URL

from accounts.access import Actor
from accounts.credentials.sign_in import still
from accounts.errors import Refusal, TooMany
from accounts.rest.errors import json_response
from storage.models import FilesPhase, FilesSession, Volume

from . import client, sessions
from .answers import away, refusal

log = logging.getLogger(__name__)

ADDRESS = re.compile(r"/api/v1/volumes/[0-9a-f-]{36}/files/content/")
CARRIED = ("GET", "HEAD", "PUT")
SLOT = "berth.files"  # in the request's scope
MOST_AT_ONCE = 4  # transfers of one person in this process
CONNECT_SECONDS, SILENCE_SECONDS = 5, 60
RECHECK_SECONDS = 20
MOST_FACTS = 64 * 1024
ONWARD = ("content-length", "content-range", "range")
BACK = ("content-length", "content-range", "accept-ranges")
# Files are anybody's: a browser must show none of them as a page of Berth's.
SAFE = (
    (b"content-type", b"application/octet-stream"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"cache-control", b"no-store"),
)

_under_way: Counter[UUID] = Counter()


@dataclass(frozen=True)
class Errand:
    """What the view allowed: the transfer of one file's content."""

    actor: Actor
    session: FilesSession
    volume: Volume
    path: str
    upload: str
    writes: bool
    language: str


class Broken(Exception):
    """The browser hung up, or was silent for too long."""


class FilesDoor:
    """ASGI middleware for the contents of files. `application` answers all other requests."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["method"] not in CARRIED or not ADDRESS.fullmatch(scope["path"]):
            await self._application(scope, receive, send)
            return
        errands: list[Errand] = []
        held: list[dict[str, Any]] = []

        async def keep(message: dict[str, Any]) -> None:
            held.append(message)

        await self._application(scope | {SLOT: errands}, Without(), keep)
        if errands:
            await carry(errands[0], scope, receive, send)
            return
        if scope["method"] == "PUT":  # the rest of the body is not read
            held[0] = held[0] | {"headers": [*held[0]["headers"], (b"connection", b"close")]}
        for message in held:
            await send(message)


class Without:
    """A request's messages without its body. It never hangs up."""

    def __init__(self) -> None:
        self._is_told = False

    async def __call__(self) -> dict[str, Any]:
        if self._is_told:
            await asyncio.Event().wait()
        self._is_told = True
        return {"type": "http.request", "body": b"", "more_body": False}


def leave(scope: dict[str, Any], errand: Errand) -> None:
    """Ask the door to carry, once the view's answer is there."""
    scope[SLOT].append(errand)


async def carry(errand: Errand, scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Carry until all is there, the browser hangs up, or its person's right to the session ends."""
    person = errand.actor.user.pk
    if _under_way[person] >= MOST_AT_ONCE:
        await refuse(errand, send, crowded)
        return
    _under_way[person] += 1
    exchange = Exchange(errand, scope, receive, send)
    ends = [asyncio.ensure_future(one) for one in (exchange.run(), exchange.gone(), lost(errand))]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if ends[0].done():
            ends[0].result()
    except Broken:
        pass
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        log.info("a files session broke off: %s", type(error).__name__)
        if not exchange.is_begun:
            await refuse(errand, send, away)
    finally:
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        _under_way[person] -= 1
        if not _under_way[person]:
            del _under_way[person]


async def lost(errand: Errand) -> None:
    """Return when the transfer must end: its session, or its person's right to it."""
    while True:
        await asyncio.sleep(RECHECK_SECONDS)
        if not await database_sync_to_async(may_go_on)(errand):
            return


def may_go_on(errand: Errand) -> bool:
    """Return True if the person may still do that, and keep the session from ending as unused."""
    volume = Volume.objects.select_related("tenant", "owner").get(pk=errand.volume.pk)
    try:
        actor = still(errand.actor)
    except Refusal:
        return False
    is_ready = FilesSession.objects.filter(pk=errand.session.pk, phase=FilesPhase.READY).exists()
    if not is_ready or not sessions.may_open(actor, volume, writes=errand.writes):
        return False
    sessions.touch(errand.session)
    return True


class Exchange:
    """One transfer: pieces from the browser to the pod, or back."""

    def __init__(self, errand: Errand, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self._errand, self._method = errand, scope["method"]
        self._headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._receive, self._send = receive, send
        self._whole = asyncio.Event()
        self.is_begun = False

    async def run(self) -> None:
        errand = self._errand
        if self._method != "PUT":
            await anext(self._pieces(), None)
        query = client.address("/content", {"path": errand.path, "upload": errand.upload})
        onward = {name: value for name, value in self._headers.items() if name in ONWARD}
        async with (
            connection() as pod,
            pod.request(
                self._method,
                URL(f"http://{errand.session.host}{query}", encoded=True),
                headers=client.headers(errand.session) | onward,
                data=self._pieces() if self._method == "PUT" else None,
                allow_redirects=False,
            ) as given,
        ):
            if given.status >= 300:
                await self._refuse(given)
            elif self._method == "PUT":
                await self._facts(given.status, await given.content.read(MOST_FACTS))
            else:
                await self._content(given)

    async def gone(self) -> None:
        """Return when the browser hangs up."""
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _pieces(self) -> AsyncIterator[bytes]:
        while not self._whole.is_set():
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    message = await self._receive()
            except TimeoutError:
                raise Broken from None
            if message["type"] == "http.disconnect":
                raise Broken
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body"):
                self._whole.set()

    async def _refuse(self, given: aiohttp.ClientResponse) -> None:
        try:
            facts = await given.json() if given.content_length and given.content_length < MOST_FACTS else {}
        except ValueError:
            facts = {}
        self.is_begun = True
        await refuse(self._errand, self._send, lambda: refusal(given.status, facts))

    async def _facts(self, status: int, body: bytes) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self._begin(status, [*headers, (b"cache-control", b"no-store")])
        await self._send({"type": "http.response.body", "body": body})

    async def _content(self, given: aiohttp.ClientResponse) -> None:
        name = quote(self._errand.path.rstrip("/").rpartition("/")[2], safe="")
        passed = [
            (key.lower(), value) for key, value in given.raw_headers if key.lower().decode("latin-1") in BACK
        ]
        disposition = (b"content-disposition", f"attachment; filename*=UTF-8''{name}".encode())
        await self._begin(given.status, [*passed, *SAFE, disposition])
        async for piece in given.content.iter_any():
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body"})

    async def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.is_begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})


def connection() -> aiohttp.ClientSession:
    """Return a connection for one transfer. That may last for hours; a silent pod ends it."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
    return aiohttp.ClientSession(timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())


def crowded() -> Refusal:
    return TooMany(
        "too_many_transfers",
        _("You have %(most)s transfers under way, the most at the same time.") % {"most": MOST_AT_ONCE},
        _("Wait until one has ended."),
        retry_after_seconds=5,
    )


async def refuse(errand: Errand, send: Any, made: Any) -> None:
    """Answer with a refusal in the reader's language, and close the connection: not all of a body may be read."""
    with translation.override(errand.language):
        answer = json_response(made())
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    length = (b"content-length", str(len(answer.content)).encode())
    start = {"type": "http.response.start", "status": answer.status_code}
    await send(start | {"headers": [*headers, length, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": answer.content})
