"""A page whose websocket is refused, because its person has too many open, says so and tries again later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, expect
from websockets.sync.client import connect
from websockets.typing import Origin

from accounts.models import User
from tests.cast import Cast
from tests.e2e.browsing import opened
from workloads.live.sockets import MOST_OF_PERSON

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]


@contextmanager
def sockets(address: str, user: User, count: int) -> Iterator[None]:
    """Open so many websockets as the person; each has sent its first frame."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    headers = {"Cookie": f"{name}={client.cookies[name].value}"}
    where = address.replace("http", "ws", 1)
    with ExitStack() as stack:
        for _ in range(count):
            wire = stack.enter_context(
                connect(f"{where}/ws/gpus/", origin=Origin(address), additional_headers=headers)
            )
            wire.recv(30)
        yield


def test_a_page_too_many_says_so(browser: Browser, address: str, cast: Cast) -> None:
    with (
        sockets(address, cast.bob.user, MOST_OF_PERSON),
        opened(browser, address, cast.bob.user, "/") as page,
    ):
        expect(page.locator("[data-too-many]")).to_be_visible()
        expect(page.locator("[data-reconnecting]")).to_be_hidden()
    with opened(browser, address, cast.bob.user, "/") as page:
        page.locator("h1").first.wait_for()
        expect(page.locator("[data-too-many]")).to_be_hidden()
