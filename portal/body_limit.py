"""Limit of the request body: it is kept whole before a view sees it, so its size must be limited."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.errors import Refusal
from accounts.rest.errors import json_response

# The API's bodies are small; those of nodes' agents, and forms with files, may have DATA_UPLOAD_MAX_MEMORY_SIZE.
LARGEST_JSON_BYTES = 256 * 2**10
API, AGENTS = "/api/v1/", "/api/v1/agent/"


class TooLarge(Refusal):
    status = 413


class LimitedBody:
    """ASGI middleware that answers 413 as soon as a body exceeds its limit."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        is_small = path.startswith(API) and not path.startswith(AGENTS)
        most_bytes = LARGEST_JSON_BYTES if is_small else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        taken_bytes = 0

        async def counted() -> Any:
            nonlocal taken_bytes
            message = await receive()
            taken_bytes += len(message.get("body", b""))
            if taken_bytes > most_bytes:
                raise TooLarge(
                    "body_too_large",
                    _("The body has more than %(most)d bytes.") % {"most": most_bytes},
                    _("Send less: put large files into a workspace's home."),
                )
            return message

        try:
            await self._application(scope, counted, send)
        except TooLarge as refusal:  # nothing is answered before the body is read
            await _answer(refusal, send)


async def _answer(refusal: Refusal, send: Any) -> None:
    answer = json_response(refusal)
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    start = {"type": "http.response.start", "status": answer.status_code}
    await send({**start, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": answer.content})
