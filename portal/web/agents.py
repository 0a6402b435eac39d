"""Reports of node agents: let in by their token before their body is read, then handled in two threads of their own.

If hundreds of agents come back after a restart, pages keep their share of the process and its connections. A stranger
takes no thread of these, and sends no body.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import IO, Any

from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import get_script_prefix
from django.core.signals import request_started
from django.db import close_old_connections
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix
from django.utils.translation import gettext as _

from accounts.credentials.tokens import digest, prefix_of
from accounts.errors import NotSignedIn, Refusal
from accounts.rest import rates
from accounts.rest.errors import as_refusal
from accounts.trail.audit import client_address
from monitoring import measures
from monitoring.intake import checks, tokens
from portal.web.body_limit import AGENTS, address_of, answer
from portal.web.fair_share import Crowded, Lanes
from portal.web.handler import InOneTurn

AGENTS_AT_ONCE = 2
MOST_BODIES = 32  # read or waiting for a turn: with the largest bodies, 64 MiB
# An agent waits for ten seconds.
LONGEST_WAIT_SECONDS = 5
# A token that was proven a moment ago is let in without a look; the view looks again.
TRUSTED_SECONDS = 60.0
MOST_PROVEN = 1000


class Busy(Refusal):
    status = 503


class Agents(InOneTurn):
    """ASGI middleware for `/api/v1/agent/`."""

    def __init__(self, application: Any) -> None:
        super().__init__()
        self._application = application
        self._threads = ThreadPoolExecutor(AGENTS_AT_ONCE, "agents")
        self._turns, self._bodies = asyncio.Semaphore(AGENTS_AT_ONCE), asyncio.Semaphore(MOST_BODIES)
        # One thread looks up unknown tokens, one of each address at a time.
        self._door, self._guard = asyncio.Semaphore(1), ThreadPoolExecutor(1, "agents-door")
        self._line = Lanes(1, LONGEST_WAIT_SECONDS)
        self._proven: dict[str, float] = {}

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not scope["path"].startswith(AGENTS):
            await self._application(scope, receive, send)
            return
        try:
            await self._let_in(scope)
            async with _within(self._bodies):
                response = await self._in_turn(scope, await self._body(receive))
        except RequestAborted:
            return
        except Refusal as refusal:
            if refusal.status in (401, 413):
                measures.REPORTS.count("refused")
            await answer(refusal, send)
            return
        await self.send_response(response, send)

    # --- before the body

    async def _let_in(self, scope: dict[str, Any]) -> None:
        """Raise NotSignedIn without an agent's token, TooLarge for a body that says so itself, Busy under a flood."""
        headers = dict(scope["headers"])
        kind, _space, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        secret = secret.strip()
        if kind.lower() != "bearer" or not prefix_of(secret, tokens.KIND):
            raise tokens.refused()
        if not self._is_proven(secret):
            address = address_of(scope)
            try:
                async with self._line.turn(address), _within(self._door):
                    await self._prove(secret, address)
            except Crowded:
                raise busy() from None
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > checks.MOST_BYTES:
            raise checks.too_large()

    def _is_proven(self, secret: str) -> bool:
        return time.monotonic() - self._proven.get(digest(secret), -TRUSTED_SECONDS) < TRUSTED_SECONDS

    async def _prove(self, secret: str, address: str) -> None:
        if self._is_proven(secret):  # by another agent with the same token, meanwhile
            return
        refusal = await asyncio.get_running_loop().run_in_executor(self._guard, _look_up, secret, address)
        if refusal is not None:
            raise refusal
        if len(self._proven) >= MOST_PROVEN:
            self._proven.clear()
        self._proven[digest(secret)] = time.monotonic()

    async def _body(self, receive: Any) -> IO[bytes]:
        try:
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                return await self.read_body(receive)
        except TimeoutError:
            raise busy() from None

    # --- in a thread

    async def _in_turn(self, scope: dict[str, Any], body: IO[bytes]) -> HttpResponseBase:
        """Raise Busy if no slot frees in time: the agent is still waiting then, and its report is not kept."""
        async with _within(self._turns):
            in_context = copy_context().run
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, in_context, self._answer, scope, body)

    def _answer(self, scope: dict[str, Any], body: IO[bytes]) -> HttpResponseBase:
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=type(self), scope=scope)
        request, response = self.create_request(scope, body)
        if request is not None:
            response = self.get_response(request)
        assert response is not None
        response.close()  # gives the connection back; what is to be sent stays
        return response


@asynccontextmanager
async def _within(places: asyncio.Semaphore) -> AsyncIterator[None]:
    """Take a place. Raise Busy if none is free in time."""
    try:
        async with asyncio.timeout(LONGEST_WAIT_SECONDS):
            await places.acquire()
    except TimeoutError:
        raise busy() from None
    try:
        yield
    finally:
        places.release()


def _look_up(secret: str, address: str) -> Refusal | None:
    """Return why the token is refused; None if it is an agent's. A refusal counts for the address."""
    client_address.set(address or None)
    try:
        tokens.authenticate(secret)
    except NotSignedIn as refusal:
        return _counted(refusal)
    except Exception as error:
        if (away := as_refusal(error)) is None:
            raise
        return away
    finally:
        close_old_connections()
    return None


def _counted(refusal: Refusal) -> Refusal:
    try:
        rates.count_stranger()
    except Refusal as too_often:
        return too_often
    return refusal


def busy() -> Busy:
    return Busy(
        "busy",
        _("Too many agents report at once."),
        _("Keep the report and try again later."),
        retry_after_seconds=LONGEST_WAIT_SECONDS,
    )
