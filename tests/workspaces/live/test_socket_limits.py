"""Websockets of one person have a limit in each process; beyond it they close with a code and a reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from django.db import connections

from tests.cast import Cast
from tests.shared.sockets import in_thread, socket
from workloads.live import sockets

pytestmark = pytest.mark.django_db(transaction=True)

HOME = "/ws/workspaces/"


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


async def test_a_socket_too_many_is_closed_with_4429_and_others_go_on(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "MOST_OF_PERSON", 2)
    async with AsyncExitStack() as stack:
        for _ in range(2):
            opened = await stack.enter_async_context(socket(HOME, cast.bob))
            assert (await opened.hear())["type"] == "snapshot"
        async with socket(HOME, cast.bob) as refused:
            frame = await refused.wire.receive_output(10)
            assert (frame["type"], frame["code"]) == ("websocket.close", sockets.TOO_MANY)
            assert 0 < len(frame["reason"].encode()) <= sockets.LONGEST_REASON_BYTES
        async with socket(HOME, cast.alice) as others:
            assert (await others.hear())["type"] == "snapshot"
    async with socket(HOME, cast.bob) as again:
        assert (await again.hear())["type"] == "snapshot"
    assert not sockets._open
