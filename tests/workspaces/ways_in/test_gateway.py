"""Jupyter through the portal: access, what passes, and isolation of workspaces by their own hosts."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import WSMsgType
from django.test import Client
from django.utils import timezone
from yarl import URL

from accounts import members
from tests.cast import Cast
from tests.shared.sockets import in_thread, until_still
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.ways_in.gateway_stage import MIB, Stage, staged
from workspaces.gateway import guests, hosts
from workspaces.gateway.door import local
from workspaces.gateway.hosts import ENTER
from workspaces.models import GatewayPass, Phase, Workspace

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


@pytest.fixture
async def stage(cast: Cast) -> AsyncIterator[Stage]:
    async with staged(cast) as stage:
        yield stage


# --- Who is let in


async def test_its_person_gets_in_and_their_browser_never_sees_jupyters_token(stage: Stage) -> None:
    await stage.open()
    async with stage.browser.get(URL(stage.at("/files/a%2Fb?x=%2F&y"), encoded=True)) as answer:
        told = await answer.json()
    assert told["path"] == "/files/a%2Fb?x=%2F&y"
    assert told["headers"]["Authorization"].startswith("token ")
    assert "berth_pass" not in told["headers"].get("Cookie", "")
    assert told["headers"]["Host"] == f"{stage.workspace.pk}.localhost:{stage.port}"
    assert "token" not in await stage.link(stage.cast.bob)


async def test_nobody_else_is_handed_over(stage: Stage) -> None:
    for other in (stage.cast.alice, stage.cast.victor, stage.cast.carol, stage.cast.admin):
        assert await stage.link(other) == ""
    assert await in_thread(GatewayPass.objects.count)() == 0


async def test_without_a_pass_pages_go_to_the_portal_and_programs_are_refused(stage: Stage) -> None:
    status, told = await stage.get("/api/status")
    assert (status, "not signed in" in told["message"]) == (401, True)
    async with stage.browser.get(
        stage.at("/lab?x=1"), headers={"Accept": "text/html"}, allow_redirects=False
    ) as answer:
        assert answer.status == 303
        assert (
            answer.headers["Location"]
            == f"http://testserver:{stage.port}/workspaces/{stage.workspace.pk}/open/?next=/lab%3Fx%3D1"
        )


async def test_a_ticket_is_for_one_use_one_minute_and_one_workspace(stage: Stage) -> None:
    link = await stage.link(stage.cast.bob)
    elsewhere = link.replace(str(stage.workspace.pk), str(uuid4()))
    for address, enters in ((elsewhere, False), (link, True), (link, False)):
        async with stage.browser.get(address, allow_redirects=False) as answer:
            assert (ENTER not in answer.headers["Location"], "Set-Cookie" in answer.headers) == (True, enters)
    late = await stage.link(stage.cast.bob)
    old = timezone.now() - timedelta(seconds=61)
    await in_thread(GatewayPass.objects.filter(is_ticket=True).update)(created_at=old)
    async with stage.browser.get(late, allow_redirects=False) as answer:
        assert "Set-Cookie" not in answer.headers


async def test_a_ticket_is_no_pass(stage: Stage) -> None:
    ticket = URL(await stage.link(stage.cast.bob)).query["ticket"]
    status, _ = await stage.get("/api/status", headers={"Cookie": f"berth_pass={ticket}"})
    assert status == 401
    await stage.open()
    status, _ = await stage.get("/api/status")
    assert status == 200


async def test_a_pass_opens_its_own_workspace_alone(stage: Stage) -> None:
    other = await in_thread(make_workspace)(stage.cast, stage.cast.bob, name="exp-2", host="127.0.0.1")
    await stage.open()
    stolen = "; ".join(f"{cookie.key}={cookie.value}" for cookie in stage.browser.cookie_jar)
    async with stage.browser.get(stage.at("/api", other.pk), headers={"Cookie": stolen}) as answer:
        assert answer.status == 401


async def test_who_loses_the_right_or_signs_out_is_out_within_seconds_and_their_sockets_at_once(
    stage: Stage,
) -> None:
    await stage.open()
    async with stage.browser.ws_connect(stage.at("/socket")) as open_socket:
        await open_socket.receive()
        await in_thread(members.remove)(stage.cast.alice, stage.cast.demo, "bob")
        closed = await open_socket.receive(10)
        assert (closed.type, open_socket.close_code) == (WSMsgType.CLOSE, 1008)
    status, _ = await stage.get("/api")
    assert status == 401


async def test_signing_out_of_the_portal_ends_what_it_opened(stage: Stage) -> None:
    client = Client(headers={"Host": f"localhost:{stage.port}"})
    await in_thread(client.force_login)(stage.cast.bob.user)
    link = (await in_thread(client.get)(f"/workspaces/{stage.workspace.pk}/open/"))["Location"]
    async with stage.browser.get(link, allow_redirects=False):
        pass
    async with stage.browser.ws_connect(stage.at("/socket")) as open_socket:
        await open_socket.receive()
        await in_thread(client.post)("/sign-out/")
        await open_socket.receive(10)
        assert open_socket.close_code == 1008


async def test_what_does_not_run_says_so(stage: Stage) -> None:
    await stage.open()
    await in_thread(Workspace.objects.update)(phase=Phase.STOPPED)
    status, told = await stage.get("/api")
    assert (status, told["message"]) == (503, "This workspace does not run at the moment.")
    async with stage.browser.get(
        stage.at("/lab"), headers={"Accept": "text/html"}, allow_redirects=False
    ) as answer:
        assert answer.headers["Location"] == f"http://localhost:{stage.port}/workspaces/{stage.workspace.pk}/"


# --- Other pages


async def test_a_page_of_another_workspace_cannot_use_the_pass(stage: Stage) -> None:
    await stage.open()
    foreign = {"Origin": stage.at("", uuid4())}
    own = {"Origin": f"http://{stage.workspace.pk}.localhost:{stage.port}"}
    for method in ("POST", "GET"):
        async with stage.browser.request(method, stage.at("/api/kernels"), headers=foreign) as answer:
            assert answer.status == 403
        for site in ("same-site", "cross-site"):
            headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
            async with stage.browser.request(method, stage.at("/files/x.js"), headers=headers) as answer:
                assert answer.status == 403
        async with stage.browser.request(method, stage.at("/api/kernels"), headers=own) as answer:
            assert answer.status == 200
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await stage.browser.ws_connect(stage.at("/socket"), headers=foreign)
    assert refused.value.status == 403


async def test_nothing_of_berth_answers_on_a_workspaces_host(stage: Stage) -> None:
    for path in ("/sign-in/", "/api/v1/me/", "/admin/", "/healthz", "/static/vendor/htmx.min.js"):
        status, _ = await stage.get(path)
        assert status == 401, path


async def test_a_cookie_of_a_workspace_stays_on_its_host(stage: Stage) -> None:
    await stage.open()
    async with stage.browser.get(stage.at("/api")) as answer:
        assert answer.headers["Set-Cookie"] == "theme=1; Path=/"


@pytest.mark.parametrize(
    "path", ["", "//evil.example", "/\\evil.example", "https://evil.example", ENTER, "lab"]
)
def test_whoever_enters_stays_on_the_host(path: str) -> None:
    assert local(path) == "/lab"


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("11111111-1111-4111-8111-111111111111.localhost:8000", True),
        ("11111111-1111-4111-8111-111111111111.LOCALHOST", True),
        ("11111111-1111-4111-8111-111111111111.evil.example", False),
        ("x.11111111-1111-4111-8111-111111111111.localhost", False),
        ("localhost:8000", False),
        ("nobody.localhost", False),
        ("11111111111141118111111111111111.localhost", False),  # an id has one spelling
        ("1-1111111-1111-4111-8111-111111111111.localhost", False),
        ("urn.uuid.localhost", False),
        ("%31.localhost", False),
        ("", False),
    ],
)
def test_a_host_names_a_workspace_or_is_left_to_the_portal(host: str, named: bool) -> None:
    assert (hosts.site_at(host) is not None) is named


# --- What passes


async def test_bodies_pass_whole_both_ways_by_length_and_in_pieces(stage: Stage) -> None:
    await stage.open()
    body = bytes(range(256)) * 4096 * 5

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    for data in (body, pieces()):
        async with stage.browser.put(stage.at("/api/contents/big"), data=data) as answer:
            told = await answer.json()
        assert told["size"] == len(body)
        assert told["digest"] == hashlib.sha256(body).hexdigest()
    async with stage.browser.get(stage.at("/large")) as answer:
        assert len(await answer.read()) == 64 * MIB


async def test_a_reader_who_stops_reading_stops_the_sender_and_harms_nobody(stage: Stage) -> None:
    await stage.open()
    async with stage.browser.get(stage.at("/endless")) as answer:
        await answer.content.readexactly(65536)
        assert await until_still(lambda: stage.jupyter.served_bytes) < 64 * MIB
        status, _ = await stage.get("/api")
        assert status == 200
        answer.close()
    await asyncio.wait_for(stage.jupyter.hung_up.wait(), 10)


async def test_an_answer_that_breaks_off_is_not_taken_for_whole(stage: Stage) -> None:
    await stage.open()
    with pytest.raises(aiohttp.ClientPayloadError):
        async with stage.browser.get(stage.at("/breaks")) as answer:
            await answer.read()


async def test_a_jupyter_that_does_not_answer_is_said(stage: Stage) -> None:
    await stage.open()
    await in_thread(Workspace.objects.update)(jupyter_port=1)
    guests._known.clear()
    status, told = await stage.get("/lab")
    assert status == 502
    assert "does not answer" in told


async def test_a_websocket_passes_text_bytes_protocol_and_close(stage: Stage) -> None:
    await stage.open()
    protocol = "v1.kernel.websocket.jupyter.org"
    async with stage.browser.ws_connect(
        stage.at("/socket"),
        protocols=(protocol,),
        headers={"Origin": stage.at("").rstrip("/")},
        max_msg_size=0,
    ) as wire:
        assert wire.protocol == protocol
        assert (await wire.receive_json())["headers"]["Authorization"].startswith("token ")
        await wire.send_str("안녕")
        assert await wire.receive_str() == "안녕"
        await wire.send_bytes(bytes(range(256)) * 16384)
        assert await wire.receive_bytes() == (bytes(range(256)) * 16384)[::-1]
        await wire.send_str("bye 4321")
        assert (await wire.receive()).type == WSMsgType.CLOSE
        assert wire.close_code == 4321
