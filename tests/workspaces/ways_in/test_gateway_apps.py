"""Apps of a workspace through the gateway: who gets in, what passes, and how soon a lost right shows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType
from channels.layers import get_channel_layer
from django.test import Client

from accounts import members
from accounts.access import Actor
from accounts.models import Role
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.sockets import in_thread
from tests.workspaces.ways_in.gateway_stage import Stage, Upstream, serving, staged
from workloads.models import Image
from workspaces.gateway import guests
from workspaces.models import GatewayPass, Phase, Share, Workspace
from workspaces.runs import declaring
from workspaces.state import jupyter
from workspaces.state.declared import CODE_SERVER_PORT, App, SharedWith

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]

PRIVATE, SHARED, OTHER = 6006, 7860, 8501
APPS = [
    App(name="TensorBoard", port=PRIVATE),
    App(name="demo", port=SHARED, shared_with=SharedWith.TENANT),
    # Its owner shared this port; VS Code there is for the owner alone all the same.
    App(name="trap", port=CODE_SERVER_PORT, shared_with=SharedWith.TENANT),
]
SECONDS = 2.0  # within which a right ends


class Door:
    """Stands where a workspace's Jupyter would: leads whoever has the gateway's token to the app's port."""

    def __init__(self, app: Upstream, port: int, token: str) -> None:
        self.app, self.port, self.token = app, port, token
        self.listens: tuple[int, ...] = (PRIVATE, SHARED, CODE_SERVER_PORT)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked = re.match(r"GET /berth/apps/(\d+) HTTP/1.1\r\n", head)
        known = f"Authorization: token {self.token}\r\n" in head and "Upgrade: berth-app\r\n" in head
        if not asked or not known or int(asked[1]) not in self.listens:
            writer.write(f"HTTP/1.1 {502 if known else 403} No\r\n\r\n".encode())
            writer.close()
            return
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: berth-app\r\n\r\n")
        app_reader, app_writer = await asyncio.open_connection("127.0.0.1", self.port)
        await asyncio.gather(pour(reader, app_writer), pour(app_reader, writer))


async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


class AppStage(Stage):
    door: Door

    async def enter(self, actor: Actor, app: int) -> str:
        """Open the app as this person's browser does; return their cookie, or "" if they are not let in."""
        link = await self.link(actor, app=app, then="/")
        if "/_berth/enter" not in link:
            return ""
        async with self.browser.get(link, allow_redirects=False) as answer:
            self.browser.cookie_jar.clear()
            assert answer.headers["Location"] == "/"
            return str(answer.headers["Set-Cookie"].partition(";")[0])

    async def ask(self, cookie: str, app: int, path: str = "/x", **headers: str) -> tuple[int, Any]:
        sent = {"Cookie": cookie, **headers}
        address = self.at(path, app=app)
        async with self.browser.get(address, headers=sent, allow_redirects=False) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await answer.json() if is_json else await answer.text()

    def socket(self, cookie: str, app: int) -> Any:
        return self.browser.ws_connect(self.at("/socket", app=app), headers={"Cookie": cookie})


@pytest.fixture
async def stage(cast: Cast) -> AsyncIterator[AppStage]:
    app = Upstream()
    async with staged(cast) as plain, serving(app.app()) as port:
        door = Door(app, port, await in_thread(jupyter.gateway_token)(plain.workspace))
        server = await asyncio.start_server(door, "127.0.0.1", 0)
        row = plain.workspace
        row.apps = [vars(app) for app in APPS]
        row.jupyter_port = server.sockets[0].getsockname()[1]
        await in_thread(row.save)(update_fields=["apps", "jupyter_port"])
        await in_thread(Image.objects.update)(has_code_server=True)
        stage = AppStage(**vars(plain))
        stage.door = door
        yield stage
        server.close()


def listed(actor: Actor, workspace: Workspace) -> list[int]:
    answer = browser(actor).get(f"/api/v1/workspaces/{workspace.pk}/")
    return [app["port"] for app in answer.json()["endpoints"]["apps"]]


async def test_the_matrix_of_apps(stage: AppStage) -> None:
    """Check who the portal hands over, and what a pass that somebody made all the same opens."""
    cast = stage.cast
    everybody = {
        "owner": cast.bob,
        "tenant's owner": cast.alice,
        "viewer": cast.victor,
        "stranger": cast.carol,
    }
    let_in = {
        PRIVATE: {"owner"},
        CODE_SERVER_PORT: {"owner"},
        SHARED: {"owner", "tenant's owner", "viewer"},
        OTHER: set(),
    }
    for app, who in let_in.items():
        for name, actor in everybody.items():
            cookie = await stage.enter(actor, app)
            assert bool(cookie) == (name in who), (app, name)
            status, _told = await stage.ask(cookie, app)
            assert status == (200 if name in who else 401), (app, name)
    share = {"workspace": stage.workspace, "user": cast.alice.user, "given_by": cast.bob.user, "role": "look"}
    await in_thread(Share.objects.create)(**share)
    assert not await stage.enter(cast.alice, PRIVATE)  # it may be a terminal
    assert await in_thread(listed)(cast.alice, stage.workspace) == [SHARED, CODE_SERVER_PORT]
    await in_thread(Share.objects.update)(role="work")
    assert await in_thread(listed)(cast.alice, stage.workspace) == [PRIVATE, SHARED, CODE_SERVER_PORT]
    assert await stage.enter(cast.alice, PRIVATE)
    assert not await stage.enter(cast.alice, CODE_SERVER_PORT)  # it works as its owner
    cookie = await stage.enter(cast.bob, PRIVATE)
    assert (await stage.ask(cookie, SHARED))[0] == 401  # a pass opens its own app alone
    async with stage.browser.get(stage.at("/lab"), headers={"Cookie": cookie}) as answer:
        assert answer.status == 401
    await in_thread(GatewayPass.objects.filter(port=PRIVATE).update)(port=OTHER)
    assert (await stage.ask(cookie, OTHER))[0] == 401


async def test_an_app_gets_what_browsers_send_and_no_secret_of_berths(stage: AppStage) -> None:
    cookie = await stage.enter(stage.cast.bob, PRIVATE)
    status, told = await stage.ask(f"{cookie}; _xsrf=1", PRIVATE, "/a?b=c", Authorization="Bearer its-own")
    headers = told["headers"]
    assert (status, told["path"]) == (200, "/a?b=c")
    assert headers["Cookie"] == "_xsrf=1"
    assert headers["Authorization"] == "Bearer its-own"
    assert (
        headers["Host"] == headers["X-Forwarded-Host"] == f"{stage.workspace.pk}-6006.localhost:{stage.port}"
    )
    assert stage.door.token not in str(told)
    script = {"Authorization": f"token {await in_thread(jupyter.token)(stage.workspace)}"}
    status, told = await stage.ask("", PRIVATE, **script)  # of the owner, who may
    assert (status, "Authorization" in told["headers"]) == (200, False)


async def test_an_app_that_does_not_run_is_said_and_comes_when_it_is_started(stage: AppStage) -> None:
    cookie = await stage.enter(stage.cast.bob, PRIVATE)
    stage.door.listens = ()
    status, told = await stage.ask(cookie, PRIVATE)
    assert (status, "port 6006" in told) == (502, True)
    stage.door.listens = (PRIVATE,)
    assert (await stage.ask(cookie, PRIVATE))[0] == 200


def loses_membership(stage: AppStage) -> None:
    members.remove(stage.cast.alice, stage.cast.demo, "victor")


def made_private(stage: AppStage) -> None:
    declaring.change(stage.cast.bob, stage.workspace, SHARED, shared_with=SharedWith.ME)


def app_removed(stage: AppStage) -> None:
    declaring.remove(stage.cast.bob, stage.workspace, SHARED)


def owner_becomes_a_viewer(stage: AppStage) -> None:
    members.set_role(stage.cast.alice, stage.cast.demo, "bob", Role.VIEWER)


ENDS: list[Callable[[AppStage], None]] = [
    loses_membership, made_private, app_removed, owner_becomes_a_viewer,
]  # fmt: skip


@pytest.mark.parametrize("ends", ENDS)
async def test_sockets_streams_and_requests_end_with_the_right(
    stage: AppStage, ends: Callable[[AppStage], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that what is open hears of the end itself: no recheck comes in this time, and requests trust for 2 s."""
    assert guests.TRUSTED_SECONDS <= SECONDS
    for name in ("STREAM_RECHECK_SECONDS", "SOCKET_RECHECK_SECONDS", "TRUSTED_SECONDS"):
        monkeypatch.setattr(guests, name, 600)
    cookie = await stage.enter(stage.cast.victor, SHARED)
    async with stage.socket(cookie, SHARED) as socket:
        await socket.receive()
        await socket.send_str("hello")
        assert await socket.receive_str() == "hello"
        stream = await stage.browser.get(stage.at("/endless", app=SHARED), headers={"Cookie": cookie})
        await stream.content.readexactly(65536)
        assert await until_two_listen()
        await in_thread(ends)(stage)
        closed, _none = await asyncio.gather(socket.receive(10), until_broken(stream))
        assert (closed.type, socket.close_code) == (WSMsgType.CLOSE, 1008)
    assert (await stage.ask(cookie, SHARED))[0] == 401


async def until_two_listen() -> bool:
    """Wait until socket and stream have joined the group that hears of changes."""
    layer: Any = get_channel_layer()
    while True:
        members_of = [found for group, found in layer._members.items() if group.startswith("apps.")]
        if [len(found) for found in members_of] == [2]:
            return True
        await asyncio.sleep(0.05)


async def until_broken(stream: aiohttp.ClientResponse) -> None:
    with pytest.raises(aiohttp.ClientPayloadError):
        while await stream.content.readany():
            pass


async def test_a_page_without_a_right_leads_to_the_portal_which_says_why(stage: AppStage) -> None:
    async with stage.browser.get(
        stage.at("/a?b", app=PRIVATE), headers={"Accept": "text/html"}, allow_redirects=False
    ) as answer:
        where = answer.headers["Location"]
    assert where.endswith(f"/workspaces/{stage.workspace.pk}/apps/{PRIVATE}/open/?next=/a%3Fb")

    def seen(actor: Actor) -> int:
        client = Client()
        client.force_login(actor.user)
        return client.get(f"/workspaces/{stage.workspace.pk}/apps/{PRIVATE}/open/").status_code

    found = [await in_thread(seen)(actor) for actor in (stage.cast.bob, stage.cast.victor, stage.cast.carol)]
    assert found == [302, 403, 404]
    await in_thread(Workspace.objects.update)(phase=Phase.STOPPED)
    assert "/_berth/enter" not in await stage.link(stage.cast.bob, app=PRIVATE)
