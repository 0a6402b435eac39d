"""Limits of request bodies: each is kept whole before a view sees it, and many may come at the same time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from accounts import addresses
from accounts.errors import Refusal, TooMany
from accounts.rest.errors import json_response
from monitoring.intake import checks

# The API's bodies are small; those of nodes' agents have their own limit, forms DATA_UPLOAD_MAX_MEMORY_SIZE.
LARGEST_JSON_BYTES = 256 * 2**10
# Bodies of one address that are kept at the same time, in this process.
MOST_HELD_BYTES = 64 * 2**20
RETRY_SECONDS = 5
API, AGENTS = "/api/v1/", "/api/v1/agent/"


class TooLarge(Refusal):
    status = 413


class LimitedBody:
    """ASGI middleware that answers 413 as soon as a body exceeds its limit, 429 if an address holds too much."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._held: Counter[str] = Counter()  # bytes, by address

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        most_bytes = _most_bytes(path)
        taken_bytes, address = 0, address_of(scope)

        async def counted() -> Any:
            nonlocal taken_bytes
            message = await receive()
            taken_bytes += (size := len(message.get("body", b"")))
            self._held[address] += size
            if taken_bytes > most_bytes:
                raise TooLarge(
                    "body_too_large",
                    _("The body has more than %(most)d bytes.") % {"most": most_bytes},
                    _("Send less: put large files into a workspace's home."),
                )
            if size and self._held[address] > MOST_HELD_BYTES:
                raise _too_much_at_once()
            return message

        try:
            await self._application(scope, counted, send)
        except (TooLarge, TooMany) as refusal:  # nothing is answered before the body is read
            await answer(refusal, send)
        finally:
            self._held[address] -= taken_bytes
            if not self._held[address]:
                del self._held[address]


def address_of(scope: dict[str, Any]) -> str:
    """Return the client's address; empty for a unix socket, which has none."""
    try:
        return addresses.plain((scope.get("client") or ("",))[0])
    except ValueError:
        return ""


def _too_much_at_once() -> TooMany:
    return TooMany(
        "too_much_at_once",
        _("Requests from your address hold more than %(most)d MiB at the same time.")
        % {"most": MOST_HELD_BYTES // 2**20},
        _("Wait for answers before you send more."),
        retry_after_seconds=RETRY_SECONDS,
    )


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
