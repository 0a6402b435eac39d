"""Clients send again what may be sent again, and turn answers into rows or errors: decided alike in both."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from berth import VERSION, AsyncClient, Client, NoAnswer, OtherVersion, Refused, Unreachable, clients
from berth.api import calls
from berth.cli.exits import Ended, Exit, exit_of

ERROR = {
    "error": {"code": "quota_exceeded", "message": "No.", "hint": "Ask.", "fields": {"gpus": ["Too many."]}}
}
ME = {"username": "alice"}
Answers = Iterator[httpx.Response | Exception]
Send = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def send(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Function that sends a call to a server which gives these answers, the last one for ever."""
    monkeypatch.setattr(clients, "FIRST_PAUSE", 0.0)

    def sent(
        call: Any, *answers: httpx.Response | Exception, patience: float = 5, key: str | None = None
    ) -> Any:
        left = list(answers)

        def answer(_request: httpx.Request) -> httpx.Response:
            given = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(given, Exception):
                raise given
            return given

        async def asked() -> Any:
            async with AsyncClient(
                "https://x", transport=httpx.MockTransport(answer), patience=patience
            ) as berth:
                return await berth.send(call, key=key)

        if request.param == "async":
            return asyncio.run(asked())
        with Client("https://x", transport=httpx.MockTransport(answer), patience=patience) as berth:
            return berth.send(call, key=key)

    return sent


CUT = httpx.ConnectError("refused")


def away() -> httpx.Response:
    return httpx.Response(503, json=ERROR)


def test_what_may_be_repeated_is_sent_until_it_arrives(send: Send) -> None:
    get, post = calls.me_retrieve(), calls.workspaces_stop_create("1")
    assert (
        send(
            get, CUT, away(), httpx.Response(429, headers={"Retry-After": "0"}), httpx.Response(200, json=ME)
        )
        == ME
    )
    assert send(post, CUT, httpx.Response(202, json=ME), key="mine") == ME
    for call, problem in ((post, CUT), (post, away())):
        with pytest.raises(Unreachable):
            send(call, problem, httpx.Response(202, json=ME))
    with pytest.raises(Unreachable, match="refused"):
        send(get, CUT, patience=0)


def test_a_refusal_says_what_berth_says_and_is_final(send: Send) -> None:
    for status in (409, 429):
        with pytest.raises(Refused) as refused:
            send(calls.me_retrieve(), httpx.Response(status, json=ERROR), httpx.Response(200, json=ME))
        assert (refused.value.status, refused.value.code) == (status, "quota_exceeded")
        assert refused.value.fields == {"gpus": ["Too many."]}
    with pytest.raises(Refused) as foreign:
        send(calls.me_retrieve(), httpx.Response(404, text="<html>"))
    assert foreign.value.code == "http_404"


@pytest.mark.parametrize("url", ["berth.example", "http://", "http://berth:abc", "ftp://berth.example"])
def test_what_is_no_address_is_refused_before_it_is_asked(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Client(url)


@pytest.mark.parametrize("token", ["brt_s3cret\n", "brt_s3crét", "brt s3cret"])
def test_what_is_no_token_is_not_repeated_in_an_error(token: str) -> None:
    with pytest.raises(ValueError, match="token") as wrong:
        Client("https://x", token)
    assert "s3cr" not in str(wrong.value)


@pytest.mark.parametrize(
    "answer",
    [
        {"html": "<html>Sign in to this network</html>"},
        {"text": "<html>", "headers": {"Content-Type": "application/json"}},
        {},
    ],
)
def test_an_answer_of_another_site_is_no_result(send: Send, answer: dict[str, Any]) -> None:
    with pytest.raises(Refused) as foreign:
        send(calls.me_retrieve(), httpx.Response(200, **answer))
    assert foreign.value.code == "http_200"
    assert exit_of(foreign.value) == Exit.UNREACHABLE


def test_what_waiting_does_not_mend_is_not_sent_again(send: Send) -> None:
    certificate = httpx.ConnectError("certificate")
    certificate.__cause__ = ssl.SSLCertVerificationError()
    for problem in (certificate, httpx.LocalProtocolError("Bearer s3cret"), httpx.ProxyError("407")):
        with pytest.raises(Unreachable) as ended:
            send(calls.me_retrieve(), problem, httpx.Response(200, json=ME))
        assert "s3cret" not in str(ended.value)


def test_a_long_wait_is_told_once(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    for silent, told in ((60.0, 0), (-1.0, 1)):
        monkeypatch.setattr(clients, "SILENT_SECONDS", silent)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            send(calls.me_retrieve(), CUT, CUT, httpx.Response(200, json=ME))
        assert [one.category for one in seen] == [NoAnswer] * told


def test_an_empty_answer_a_text_and_another_version(send: Send) -> None:
    assert send(calls.tokens_destroy("1"), httpx.Response(204)) is None
    assert (
        send(
            calls.usage_retrieve(format="csv"),
            httpx.Response(200, text="a,b", headers={"Berth-Version": VERSION}),
        )
        == "a,b"
    )
    for version, warned in (("0.1.9", 0), ("0.2.0", 1)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            send(calls.me_retrieve(), httpx.Response(200, json=ME, headers={"Berth-Version": version}))
        assert [one.category for one in seen] == [OtherVersion] * warned


def test_pages_are_asked_for_at_the_address_that_was_given() -> None:
    """Behind a proxy, the address in `next` may lead elsewhere: a token must not go there."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        next_one = "http://elsewhere/api/v1/jobs/?cursor=c%3D1&phase=failed&phase=running"
        following = None if "cursor" in str(request.url) else next_one
        return httpx.Response(200, json={"results": [{"name": str(len(asked))}], "next": following})

    async def names() -> list[str]:
        async with AsyncClient("https://x", "secret", transport=httpx.MockTransport(answer)) as berth:
            return [job["name"] async for job in berth.rows(call)]

    call, transport = calls.jobs_list(phase=["failed", "running"]), httpx.MockTransport(answer)
    with Client("https://x", "secret", transport=transport) as berth:
        assert [job["name"] for job in berth.rows(call)] == ["1", "2"]
    assert asyncio.run(names()) == ["3", "4"]
    page = "https://x/api/v1/jobs/?phase=failed&phase=running"
    assert asked == [page, f"{page}&cursor=c%3D1"] * 2


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A large answer, which counts the pieces that it gave, and may break off."""

    def __init__(self, count: int, breaks_off: bool = False) -> None:
        self.count, self.breaks_off, self.given = count, breaks_off, 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self.count):
            self.given += 1
            yield b"x" * 1000
        if self.breaks_off:
            raise httpx.ReadError("broken off")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_large_answer_is_read_in_pieces(kind: type[Any]) -> None:
    def read(status: int, pieces: Pieces) -> int:
        headers = {"Berth-Version": VERSION, "Content-Type": "application/x-tar"}
        answer = httpx.MockTransport(lambda _request: httpx.Response(status, headers=headers, stream=pieces))
        call, count = calls.class_launches_collect_create("1", {"folder": "hand-in"}), 0

        async def read_along() -> int:
            count = 0
            async with kind("https://x", transport=answer) as berth, berth.stream(call) as response:
                async for _piece in response.aiter_bytes():
                    count += 1
                    assert pieces.given == count, "no piece is taken before its turn"
            return count

        if kind is AsyncClient:
            return asyncio.run(read_along())
        with kind("https://x", transport=answer) as berth, berth.stream(call) as response:
            for count, _piece in enumerate(response.iter_bytes(), 1):
                assert pieces.given == count, "no piece is taken before its turn"
        return count

    assert read(200, Pieces(50)) == 50
    with pytest.raises(Unreachable, match="broken off"):
        read(200, Pieces(3, breaks_off=True))
    with pytest.raises(Refused) as refused:
        read(404, Pieces(1))
    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused(401, "not_signed_in", ""), Exit.NOT_SIGNED_IN),
        (Refused(404, "not_found", ""), Exit.NOT_FOUND),
        (Refused(422, "quota_exceeded", ""), Exit.REFUSED),
        (Refused(500, "http_500", ""), Exit.UNREACHABLE),
        (Unreachable(), Exit.UNREACHABLE),
        (Ended(Exit.FAILED, "failed", ""), Exit.FAILED),
    ],
)
def test_each_kind_of_end_has_its_exit_code(error: Any, code: Exit) -> None:
    assert exit_of(error) == code
