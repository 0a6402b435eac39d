"""Short answers of the gateway itself, beside those that it carries from Jupyter."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.conf import settings

Header = tuple[bytes, bytes]


def by_https_alone(send: Any) -> Any:
    """Return `send` with a header that keeps browsers from coming back in clear text, as Berth's own pages send it."""
    seconds = settings.SECURE_HSTS_SECONDS
    header = (b"strict-transport-security", f"max-age={seconds}".encode())

    async def send_with_it(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], header]}
        await send(message)

    return send_with_it if seconds else send


async def answer(send: Any, status: int, headers: list[Header], body: bytes = b"") -> None:
    """Send a complete answer that must not be cached."""
    always = [(b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *always]})
    await send({"type": "http.response.body", "body": body})


async def redirect(send: Any, where: str, cookies: Iterable[str] = ()) -> None:
    headers = [(b"location", where.encode()), (b"referrer-policy", b"no-referrer")]
    headers += [(b"set-cookie", cookie.encode()) for cookie in cookies]
    await answer(send, 303, headers)


async def refuse(send: Any, status: int, message: str, *, retry_after_seconds: int | None = None) -> None:
    """Refuse in the format that Jupyter's pages know from Jupyter."""
    headers = [(b"content-type", b"application/json")]
    if retry_after_seconds is not None:
        headers.append((b"retry-after", str(retry_after_seconds).encode()))
    await answer(send, status, headers, json.dumps({"message": message}).encode())
