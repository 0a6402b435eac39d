"""Limit of the request body: it is kept whole before a view sees it, so its size must be limited."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.errors import Refusal
from accounts.rest.errors import json_response
from monitoring.intake import checks

# The API's bodies are small; those of nodes' agents have their own limit, forms DATA_UPLOAD_MAX_MEMORY_SIZE.
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
        most_bytes = _most_bytes(path)
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
            await answer(refusal, send)


def _most_bytes(path: str) -> int:
    if path.startswith(AGENTS):
        return checks.MOST_BYTES
    return LARGEST_JSON_BYTES if path.startswith(API) else settings.DATA_UPLOAD_MAX_MEMORY_SIZE


async def answer(refusal: Refusal, send: Any) -> None:
    """Refuse before the body was read, and close the connection: what is still to come is not read."""
    refused = json_response(refusal)
    headers = [(name.lower().encode(), value.encode()) for name, value in refused.items()]
    length = (b"content-length", str(len(refused.content)).encode())
    start = {"type": "http.response.start", "status": refused.status_code}
    await send({**start, "headers": [*headers, length, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": refused.content})
