"""Attacks on the gateway by a hostile page, person or Jupyter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from django.db import OperationalError
from django.test import Client
from yarl import URL

from tests.cast import Cast
from tests.shared.sockets import in_thread
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.ways_in.gateway_stage import Stage, cookie, raw, staged
from workspaces.gateway import guests, passes, sockets
from workspaces.gateway.door import local
from workspaces.models import GatewayPass

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


@pytest.fixture
async def stage(cast: Cast) -> AsyncIterator[Stage]:
    async with staged(cast) as stage:
        yield stage


# --- Where a request goes


async def test_no_request_target_leads_to_another_server(stage: Stage) -> None:
    await stage.open()
    asked = asyncio.Event()

    async def told(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        writer.close()

    server = await asyncio.start_server(told, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    socket = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    for target in ("*@{}/stolen", "*", "http://{}/stolen", "//{}/stolen", "/\\@{}/stolen"):
        for upgrade in ((), (*socket, key)):
            answer = await raw(stage, f"GET {target.format(address)} HTTP/1.1", *upgrade)
            assert not asked.is_set(), target
            assert " 500 " not in answer.partition("\r\n")[0], target
    server.close()


async def test_two_hosts_are_none(stage: Stage) -> None:
    await stage.open()
    answer = await raw(stage, "GET /api HTTP/1.1", "Host: localhost")
    assert answer.startswith("HTTP/1.1 400")


@pytest.mark.parametrize("path", ["/\t/evil.example", "/\n/evil.example", "/\\evil.example", "/a\r\nX: y"])
def test_whoever_enters_gets_one_location_on_this_host(path: str) -> None:
    where = local(path)
    assert "//" not in str(URL("http://here/").join(URL(where)).path)
    assert where.isprintable()
    assert "\\" not in where


async def test_an_address_cannot_end_a_header(stage: Stage) -> None:
    link = (await stage.link(stage.cast.bob)).partition("&next=")[0] + "&next=/lab%0d%0aX-Evil:%20yes"
    async with stage.browser.get(URL(link, encoded=True), allow_redirects=False) as answer:
        assert "X-Evil" not in answer.headers
        assert answer.headers["Location"] == "/lab%0D%0AX-Evil:%20yes"


# --- What passes: no request hides in another


async def test_the_body_of_any_method_is_carried(stage: Stage) -> None:
    """Check that no length passes without its body: Jupyter would take the next request for the body."""
    await stage.open()
    for method in ("GET", "DELETE", "OPTIONS", "POST"):
        told = await raw(stage, f"{method} /api HTTP/1.1", "Content-Length: 5", body="12345")
        assert '"size": 5' in told, method
    told = await raw(
        stage,
        "GET /api HTTP/1.1",
        "Transfer-Encoding: chunked",
        body="3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n",
    )
    assert '"size": 3' in told


async def test_a_body_of_doubtful_length_is_refused(stage: Stage) -> None:
    await stage.open()
    for framing in (
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding : chunked",),
        ("Content-Length: +5",),
        ("X: y\nContent-Length: 5",),
        ("X: a\rb",),
    ):
        answer = await raw(stage, "POST /api HTTP/1.1", *framing, body="0\r\n\r\n")
        assert answer.startswith("HTTP/1.1 400"), framing


async def test_headers_of_one_connection_end_there(stage: Stage) -> None:
    await stage.open()
    own = (
        "Connection: X-Mine, authorization, cookie",
        "X-Mine: 1",
        "X-Yours: 2",
        "Upgrade: h2c",
        "TE: trailers",
    )
    told = (await raw(stage, "GET /api HTTP/1.1", *own, "Authorization: token guessed")).lower()
    assert '"x-yours": "2"' in told
    for name in ("x-mine", "upgrade", '"te"', "guessed", "h2c"):
        assert name not in told


# --- The pass


async def test_odd_cookies_beside_it_harm_no_pass_and_none_reaches_jupyter(stage: Stage) -> None:
    await stage.open()
    secret = cookie(stage)
    for beside in (
        'odd="a b; {}', "a={{1,2}}; {}", "ü=1;{}; x", "berth_pass=tossed; {}", "{}; berth_pass=tossed", "=;;{}"
    ):  # fmt: skip
        stage.browser.cookie_jar.clear()
        status, told = await stage.get("/api", headers={"Cookie": beside.format(secret)})
        assert status == 200, beside
        assert "berth_pass" not in told["headers"].get("Cookie", ""), beside


async def test_long_passes_are_not_kept_in_memory(stage: Stage) -> None:
    before = len(guests._known)
    status, _ = await stage.get("/api", headers={"Cookie": "berth_pass=" + "x" * 5000})
    assert (status, len(guests._known)) == (401, before)


async def test_of_two_who_enter_at_once_one_gets_in(stage: Stage) -> None:
    link = await stage.link(stage.cast.bob)

    async def enter() -> bool:
        async with stage.browser.get(link, allow_redirects=False) as answer:
            return "Set-Cookie" in answer.headers

    assert sorted(await asyncio.gather(*(enter() for _ in range(8)))) == [False] * 7 + [True]


async def test_looking_ahead_does_not_use_a_ticket_up(stage: Stage) -> None:
    link = await stage.link(stage.cast.bob)
    async with stage.browser.head(link, allow_redirects=False) as answer:
        assert answer.status == 405
    async with stage.browser.get(link, allow_redirects=False) as answer:
        assert "Set-Cookie" in answer.headers


def test_a_page_that_opens_jupyter_over_and_over_fills_no_table(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "MOST_PER_SESSION", 3)
    workspace = make_workspace(cast, cast.bob)
    client = Client(headers={"Host": "localhost:8000"})
    client.force_login(cast.bob.user)
    for _ in range(5):
        client.get(f"/workspaces/{workspace.pk}/open/")
    assert GatewayPass.objects.count() == 3


@pytest.mark.parametrize("mode", ["no-cors", "cors"])
def test_only_a_person_who_opens_a_page_is_handed_over(cast: Cast, mode: str) -> None:
    workspace = make_workspace(cast, cast.bob)
    client = Client(headers={"Host": "localhost:8000", "Sec-Fetch-Mode": mode})
    client.force_login(cast.bob.user)
    answer = client.get(f"/workspaces/{workspace.pk}/open/")
    assert (answer.status_code, GatewayPass.objects.count()) == (403, 0)


# --- Other pages


async def test_other_pages_cannot_send_forms_or_frame_it(stage: Stage) -> None:
    await stage.open()
    asked: list[tuple[str, dict[str, str]]] = [
        ("POST", {"Origin": "null"}),
        ("GET", {"Origin": "http://["}),
        ("POST", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}),
        ("GET", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "object"}),
        ("GET", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "websocket"}),
    ]
    for method, headers in asked:
        async with stage.browser.request(method, stage.at("/api"), headers=headers) as answer:
            assert answer.status == 403, headers


async def test_a_page_of_this_host_over_another_scheme_is_another(stage: Stage) -> None:
    await stage.open()
    for origin in (
        stage.at("").replace("http:", "https:"),
        "null",
        f"http://{uuid4()}.localhost:{stage.port}",
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await stage.browser.ws_connect(stage.at("/socket"), headers={"Origin": origin})
        assert refused.value.status == 403


async def test_a_link_from_elsewhere_opens(stage: Stage) -> None:
    await stage.open()
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert (await stage.get("/lab", headers=link))[0] == 200


async def test_no_service_worker_stands_before_the_way_in(stage: Stage) -> None:
    await stage.open()
    assert (await stage.get("/worker.js", headers={"Service-Worker": "script"}))[0] == 403
    assert (await stage.get("/proxy/8080/worker.js", headers={"Service-Worker": "script"}))[0] == 200


# --- Who is shown out


async def test_a_new_password_ends_the_pass(stage: Stage) -> None:
    await stage.open()
    user = stage.cast.bob.user
    user.set_password("another-password")
    await in_thread(user.save)()
    assert (await stage.get("/api"))[0] == 401


async def test_a_new_secret_key_signs_nobody_out(stage: Stage, settings: Any) -> None:
    await stage.open()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-" + "1" * 50
    for _ in range(2):
        guests._known.clear()
        assert (await stage.get("/api"))[0] == 200


async def test_one_workspace_cannot_take_all_there_is(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "MOST_AT_ONCE", 2)
    await stage.open()
    async with stage.browser.ws_connect(stage.at("/socket")), stage.browser.ws_connect(stage.at("/socket")):
        await is_crowded(stage)
    async with asyncio.timeout(10):
        while (await stage.get("/api"))[0] != 200:
            await asyncio.sleep(0.05)


async def is_crowded(stage: Stage) -> None:
    assert (await stage.get("/api"))[0] == 429
    async with stage.browser.ws_connect(stage.at("/socket")) as refused:
        await refused.receive()
        assert refused.close_code == sockets.TRY_AGAIN_LATER


async def test_one_person_cannot_take_all_there_is(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "MOST_OF_PERSON", 1)
    await stage.open()
    async with stage.browser.ws_connect(stage.at("/socket")):
        await is_crowded(stage)
    async with asyncio.timeout(10):
        while guests._under_way:
            await asyncio.sleep(0.05)


@pytest.mark.django_db
def test_a_person_has_so_many_unused_tickets(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MOST_UNUSED", 2)
    bob = Client()
    bob.force_login(cast.bob.user)
    links = [f"/workspaces/{make_workspace(cast, cast.bob, name=f'run-{n}').pk}/open/" for n in range(3)]
    answers = [bob.get(link) for link in links]
    assert [answer.status_code for answer in answers] == [302, 302, 429]
    assert 1 <= int(answers[-1]["Retry-After"]) <= 60
    GatewayPass.objects.update(is_ticket=False)  # browsers used them
    assert bob.get(links[2]).status_code == 302


async def test_while_the_database_is_away_that_is_said(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any) -> None:
        raise OperationalError

    await stage.open()
    monkeypatch.setattr(guests, "_ask", away)
    status, told = await stage.get("/api")
    assert (status, "at the moment" in told["message"]) == (503, True)
