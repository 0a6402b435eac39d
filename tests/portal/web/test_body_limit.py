"""Large bodies cannot fill the web server's memory or disk, with or without a Content-Length."""

import asyncio
import json
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

from portal.asgi import application
from portal.web import body_limit
from portal.web.body_limit import LimitedBody

SECONDS = 10.0


async def post(path: str, chunk: bytes, count: int) -> tuple[int, Any]:
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"testserver")],
    }
    wire: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]
    for number in range(count):
        await wire.send_input({"type": "http.request", "body": chunk, "more_body": number < count - 1})
    start = await wire.receive_output(SECONDS)
    body = await wire.receive_output(SECONDS)
    return start["status"], json.loads(body["body"])


async def test_an_endless_body_is_cut_off_before_the_view() -> None:
    status, _body = await post("/launch/", b"x" * 2**20, 3)
    assert status == 413
    status, body = await post("/api/v1/workspaces/", b"x" * 2**16, 5)
    assert status == 413
    assert body["error"]["code"] == "body_too_large"


async def test_a_body_of_ordinary_size_reaches_the_view() -> None:
    status, body = await post("/api/v1/workspaces/", b"x" * 2**16, 4)
    assert status == 401
    assert body["error"]["code"] == "not_signed_in"


async def test_an_address_holds_so_many_bytes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "MOST_HELD_BYTES", 2**20)
    limited = LimitedBody(keep)

    def begin(client: str) -> Any:
        scope = {"type": "http", "path": "/launch/", "client": (client, 1)}
        return ApplicationCommunicator(limited, scope)  # type: ignore[no-untyped-call]

    piece = {"type": "http.request", "body": b"x" * (2**20 * 3 // 4), "more_body": True}
    first, second, other = begin("10.0.0.1"), begin("10.0.0.1"), begin("10.0.0.2")
    for wire in (first, second, other):
        await wire.send_input(piece)
        await asyncio.sleep(0)
    start = await second.receive_output(SECONDS)
    headers = dict(start["headers"])
    assert (start["status"], headers[b"retry-after"]) == (429, str(body_limit.RETRY_SECONDS).encode())
    for wire in (first, other):
        assert await wire.receive_nothing()
        await wire.send_input({"type": "http.request"})
        assert (await wire.receive_output(SECONDS))["status"] == 204
        await wire.wait(SECONDS)
    await second.receive_output(SECONDS)
    await second.wait(SECONDS)
    assert not limited._held


async def keep(scope: Any, receive: Any, send: Any) -> None:
    """Application that answers once it has the whole body."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
