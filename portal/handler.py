"""Django behind ASGI. Our code is sync (middleware, views, database), so each request runs in one turn of a thread.

Django's own handler would call the view from its event loop, and so switch to the thread and back once more for each
request, which costs as much as a small view.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import IO, Any

from asgiref.sync import sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_started
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix
from django.utils.translation import gettext as _

from accounts.errors import Refusal
from accounts.rest.errors import json_response

AGENTS = "/api/v1/agent/"
AGENTS_AT_ONCE = 2
# An agent waits for ten seconds.
LONGEST_WAIT_SECONDS = 5


class InOneTurn(ASGIHandler):
    def __init__(self) -> None:
        self.load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)


class Busy(Refusal):
    status = 503


class Agents(InOneTurn):
    """ASGI middleware that handles reports of node agents in two threads of its own, one after another.

    If hundreds of agents come back after a restart, pages keep their share of the process and its connections.
    """

    def __init__(self, application: Any) -> None:
        super().__init__()
        self._application = application
        self._threads = ThreadPoolExecutor(AGENTS_AT_ONCE, "agents")
        self._turns = asyncio.Semaphore(AGENTS_AT_ONCE)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not scope["path"].startswith(AGENTS):
            await self._application(scope, receive, send)
            return
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        await self.send_response(await self._in_turn(scope, body), send)

    async def _in_turn(self, scope: dict[str, Any], body: IO[bytes]) -> HttpResponseBase:
        """Answer 503 if no slot frees in time: the agent is still waiting then, and its report is not kept."""
        try:
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            return json_response(_busy())
        try:
            in_context = copy_context().run
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, in_context, self._answer, scope, body)
        finally:
            self._turns.release()

    def _answer(self, scope: dict[str, Any], body: IO[bytes]) -> HttpResponseBase:
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=type(self), scope=scope)
        request, response = self.create_request(scope, body)
        if request is not None:
            response = self.get_response(request)
        assert response is not None
        response.close()  # gives the connection back; what is to be sent stays
        return response


def _busy() -> Busy:
    return Busy(
        "busy",
        _("Too many agents report at once."),
        _("Keep the report and try again later."),
        retry_after_seconds=LONGEST_WAIT_SECONDS,
    )
