"""Django behind ASGI. Our code is sync (middleware, views, database), so each request runs in one turn of a thread.

Django's own handler would call the view from its event loop, and so switch to the thread and back once more for each
request, which costs as much as a small view.
"""

from __future__ import annotations

import asyncio
import time

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import translation

from accounts.errors import TooMany
from accounts.rest.errors import headers_of, is_api, json_response
from portal.web.fair_share import MOST_AT_ONCE, Askers, Crowded, Lanes, too_many_at_once

# Asked by probes, which must not wait behind people.
PROBES = {"/healthz", "/readyz", "/readyz/web"}


class InOneTurn(ASGIHandler):
    """Handler whose requests wait for a turn of their person before they take a thread."""

    def __init__(self) -> None:
        self.load_middleware(is_async=False)
        self._lanes, self._askers = Lanes(MOST_AT_ONCE), Askers()

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        lane = self._askers.lane_of(request)
        if request.path in PROBES:
            lane = "probe", lane
        try:
            await self._lanes.take(lane)
        except Crowded:
            with translation.override(translation.get_language_from_request(request)):
                return _crowded(request, too_many_at_once())
        spent = list[float]()
        work = asyncio.ensure_future(sync_to_async(self._answer_timed)(request, spent))
        work.add_done_callback(lambda _work: self._lanes.give_back(lane, sum(spent)))
        work.add_done_callback(lambda _work: self._askers.note(request))
        try:
            # Whoever hangs up keeps their turn until the thread is done: it cannot be stopped.
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(_close)
            raise

    def _answer_timed(self, request: HttpRequest, spent: list[float]) -> HttpResponseBase:
        """Answer, and note the seconds of CPU that it took: time alone would count what others of the machine do."""
        began = time.thread_time()
        try:
            return self.get_response(request)
        finally:
            spent.append(time.thread_time() - began)


def _close(work: asyncio.Future[HttpResponseBase]) -> None:
    """Close an answer that nobody waits for: a log's reader would keep its place for ever."""
    if not work.cancelled() and work.exception() is None and work.result().streaming:
        asyncio.get_running_loop().run_in_executor(None, work.result().close)


def _crowded(request: HttpRequest, refusal: TooMany) -> HttpResponse:
    if is_api(request):
        return json_response(refusal)
    page = render_to_string("429.html", {"refusal": refusal})
    return HttpResponse(page, status=refusal.status, headers=headers_of(refusal))
