"""A person's requests wait for each other, so that one script cannot take the threads of everybody else."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Hashable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.functional import SimpleLazyObject

from accounts.credentials import tokens
from portal.web import fair_share
from portal.web.fair_share import MOST_AT_ONCE, Askers, Crowded, Lanes
from portal.web.handler import InOneTurn
from tests.cast import Cast, make_cast
from tests.shared.sockets import headers_of, in_thread

SECONDS = 10.0


# --- Lanes


async def waiting(lanes: Lanes, key: Hashable, count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(lanes.take(key)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_turns_come_in_order_and_each_key_has_its_own() -> None:
    lanes = Lanes(2)
    first = await waiting(lanes, "a", 4)
    assert [task.done() for task in first] == [True, True, False, False]
    (other,) = await waiting(lanes, "b", 1)
    assert other.done()
    lanes.give_back("a")
    await asyncio.sleep(0)
    assert [task.done() for task in first] == [True, True, True, False]
    for key in "aaab":
        lanes.give_back(key)
        await asyncio.sleep(0)
    assert not len(lanes)


async def test_a_turn_that_does_not_come_in_time_is_refused_and_the_line_goes_on() -> None:
    lanes = Lanes(1, 0.01)
    await lanes.take("a")
    with pytest.raises(Crowded):
        await lanes.take("a")
    lanes.give_back("a")
    assert not len(lanes)
    await lanes.take("a")


async def test_the_line_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "MOST_WAITING", 2)
    lanes = Lanes(1)
    tasks = await waiting(lanes, "a", 4)
    assert isinstance(tasks[3].exception(), Crowded)
    for _ in range(3):
        lanes.give_back("a")
        await asyncio.sleep(0)
    assert not len(lanes)


async def test_who_leaves_the_line_takes_no_turn_with_them() -> None:
    lanes = Lanes(1)
    _running, leaving, last = await waiting(lanes, "a", 3)
    lanes.give_back("a")
    leaving.cancel()  # in the moment in which the turn was given
    await asyncio.wait([leaving, last], timeout=SECONDS)
    assert last.done() and not last.cancelled()
    lanes.give_back("a")
    assert not len(lanes)


async def test_who_keeps_threads_busy_has_one_turn_until_they_paused() -> None:
    lanes, busy = Lanes(3), uuid4()
    for _ in range(2):
        await lanes.take(busy)
    lanes.give_back(busy, fair_share.HEAVY_SECONDS + 1)
    (second,) = await waiting(lanes, busy, 1)
    assert not second.done()
    lanes.give_back(busy, 0.1)
    await asyncio.sleep(0)
    assert second.done()
    assert all(task.done() for task in await waiting(lanes, "other", 3))
    now = asyncio.get_running_loop().time()
    assert lanes._width(busy, now) == 1
    assert lanes._width(busy, now + fair_share.HALF_LIFE_SECONDS) == 3


async def test_an_address_keeps_its_turns_since_many_may_sign_in_behind_it() -> None:
    lanes = Lanes(3)
    await lanes.take("192.0.2.1")
    lanes.give_back("192.0.2.1", 100.0)
    assert all(task.done() for task in await waiting(lanes, "192.0.2.1", 3))


async def test_what_is_remembered_of_use_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "MOST_KNOWN", 3)
    lanes = Lanes(1)
    for number in range(5):
        async with lanes.turn(number):
            pass
    assert len(lanes._used) == 3


# --- Whose request it is


def request(headers: dict[str, str], user: Any = None, address: str = "10.0.0.1") -> HttpRequest:
    found = HttpRequest()
    found.META = {f"HTTP_{name.upper()}": value for name, value in headers.items()} | {"REMOTE_ADDR": address}
    if user is not None:
        found.user = user
    return found


def test_a_proven_credential_is_its_persons_and_all_else_its_addresss(db: None) -> None:
    bob, askers = make_cast().bob.user, Askers()
    token = {"authorization": "Bearer one"}
    assert askers.lane_of(request(token)) == "10.0.0.1"
    askers.note(request(token, bob))
    assert askers.lane_of(request(token, address="10.0.0.2")) == bob.pk
    assert askers.lane_of(request({"authorization": "Bearer two"})) == "10.0.0.1"
    askers.note(request(token, AnonymousUser()))  # revoked: it proved nobody
    assert askers.lane_of(request(token)) == "10.0.0.1"
    assert askers.lane_of(request({}, address="2001:db8::1")) == "2001:db8::"
    assert askers.lane_of(request({}, address="")) == ""


def test_what_asks_for_nobody_leaves_a_credential_its_persons(db: None) -> None:
    bob, askers = make_cast().bob.user, Askers()
    session, file = request({}), request({})
    session.COOKIES = file.COOKIES = {settings.SESSION_COOKIE_NAME: "one"}
    session._cached_user = bob  # type: ignore[attr-defined]
    token, probe = request({"authorization": "Bearer one"}, bob), request({"authorization": "Bearer one"})
    for proven in (session, token):
        askers.note(proven)
    probe.user = SimpleLazyObject(AnonymousUser)  # type: ignore[assignment]
    for asked_nobody in (file, probe):
        askers.note(asked_nobody)
        assert askers.lane_of(asked_nobody) == bob.pk
    file._cached_user = AnonymousUser()  # type: ignore[attr-defined] # signed out
    askers.note(file)
    assert askers.lane_of(file) == "10.0.0.1"


def test_what_is_known_is_bounded(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "MOST_KNOWN", 3)
    bob, askers = make_cast().bob.user, Askers()
    for number in range(5):
        askers.note(request({"authorization": f"Bearer {number}"}, bob))
    assert len(askers._known) == 3


# --- The handler


class Slow(InOneTurn):
    """Handler whose requests to /launch/ wait for the test, in their threads."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on, self.begun = threading.Event(), 0

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        response = super().get_response(request)
        if request.path != "/launch/":
            return response
        self.begun += 1
        assert self.goes_on.wait(SECONDS)
        return response


@pytest.fixture
def slow() -> Iterator[Slow]:
    slow = Slow()
    yield slow
    slow.goes_on.set()


@pytest.fixture
async def cast(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cast]:
    # As in a web process: each request has a thread of its own, which keeps no connection.
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", 0)
    yield await in_thread(make_cast)()
    await in_thread(connections.close_all)()


async def wire(where: Any, path: str, headers: list[tuple[bytes, bytes]]) -> Any:
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": headers,
        "client": ("10.0.0.1", 1),
    }
    wire: Any = ApplicationCommunicator(where, scope)  # type: ignore[no-untyped-call]
    await wire.send_input({"type": "http.request"})
    return wire


async def ask(where: Any, path: str, headers: list[tuple[bytes, bytes]]) -> tuple[int, dict[str, str], bytes]:
    asking = await wire(where, path, headers)
    start = await asking.receive_output(SECONDS)
    body = await asking.receive_output(SECONDS)
    await asking.wait(SECONDS)  # until its thread's connection is closed
    found = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], found, body["body"]


async def until(look: Any) -> None:
    deadline = time.monotonic() + SECONDS
    while not look():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_one_persons_requests_leave_the_threads_to_others(
    slow: Slow, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob, alice = [await in_thread(headers_of)(actor) for actor in (cast.bob, cast.alice)]
    assert (await ask(slow, "/usage/", bob))[0] == 200  # the session is known from now on
    monkeypatch.setattr(fair_share, "MOST_WAITING", 2)
    flood = [asyncio.create_task(ask(slow, "/launch/", bob)) for _ in range(MOST_AT_ONCE + 4)]
    await until(lambda: slow.begun == MOST_AT_ONCE)
    await until(lambda: sum(task.done() for task in flood) == 2)
    for task in [task for task in flood if task.done()]:
        status, headers, page = task.result()
        assert (status, headers["retry-after"]) == (429, str(fair_share.RETRY_SECONDS))
        assert b"<html" in page
    assert (await ask(slow, "/usage/", alice))[0] == 200
    assert (await ask(slow, "/healthz", bob))[0] == 200
    status, _headers, body = await ask(slow, "/api/v1/me/", bob)
    assert (status, json.loads(body)["error"]["code"]) == (429, "too_many_at_once")
    assert slow.begun == MOST_AT_ONCE
    slow.goes_on.set()
    assert sorted([(await task)[0] for task in flood]) == [200] * (MOST_AT_ONCE + 2) + [429] * 2
    await until(lambda: not len(slow._lanes))


async def test_the_tokens_of_a_person_share_their_turns(slow: Slow, cast: Cast) -> None:
    issue = in_thread(tokens.issue)
    secrets = [(await issue(cast.bob.user, f"script-{number}", ["read"]))[1] for number in range(2)]
    for secret in secrets:
        headers = [(b"host", b"testserver"), (b"authorization", f"Bearer {secret}".encode())]
        assert (await ask(slow, "/api/v1/me/", headers))[0] == 200
    assert set(slow._askers._known.values()) == {cast.bob.user.pk}


async def test_who_hangs_up_keeps_their_turn_until_the_thread_is_done(slow: Slow, cast: Cast) -> None:
    bob = await in_thread(headers_of)(cast.bob)
    assert (await ask(slow, "/usage/", bob))[0] == 200
    left = []
    for number in range(MOST_AT_ONCE):
        asking = await wire(slow, "/launch/", bob)
        await until(lambda number=number: slow.begun == number + 1)
        await asking.send_input({"type": "http.disconnect"})
        left.append(asking)
    next_one = asyncio.create_task(ask(slow, "/launch/", bob))
    await asyncio.sleep(0.1)
    assert slow.begun == MOST_AT_ONCE
    slow.goes_on.set()
    assert (await next_one)[0] == 200
    for asking in left:
        await asking.wait(SECONDS)


async def test_a_stream_whose_reader_hung_up_before_it_began_is_closed(
    slow: Slow, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = threading.Event()

    class Lines:
        def __iter__(self) -> Iterator[bytes]:
            return iter([])

        close = staticmethod(closed.set)

    def answer(self: Any, request: HttpRequest) -> HttpResponseBase:
        slow.begun += 1
        assert slow.goes_on.wait(SECONDS)
        return StreamingHttpResponse(Lines()) if request.path == "/launch/" else HttpResponse()

    monkeypatch.setattr(InOneTurn, "get_response", answer)
    monkeypatch.setattr(Slow, "get_response", answer)
    asking = await wire(slow, "/launch/", [(b"host", b"testserver")])
    await until(lambda: slow.begun == 1)
    await asking.send_input({"type": "http.disconnect"})
    await asyncio.sleep(0.1)
    slow.goes_on.set()
    await until(closed.is_set)


async def test_work_counts_as_use_and_waiting_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(self: Any, request: HttpRequest) -> HttpResponseBase:
        began = time.thread_time()
        while request.path == "/busy/" and time.thread_time() - began < 0.1:
            pass
        threading.Event().wait(0.1)
        return HttpResponse()

    monkeypatch.setattr(InOneTurn, "get_response", answer)
    handler, headers = InOneTurn(), [(b"host", b"testserver")]
    for path, least, most in (("/wait/", 0.0, 0.09), ("/busy/", 0.09, 10.0)):
        assert (await ask(handler, path, headers))[0] == 200
        assert least <= handler._lanes._used_by("10.0.0.1", fair_share._now()) < most, path
