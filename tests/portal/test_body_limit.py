"""Large bodies cannot fill the web server's memory or disk, with or without a Content-Length."""

import json
from typing import Any

from asgiref.testing import ApplicationCommunicator

from portal.asgi import application

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
