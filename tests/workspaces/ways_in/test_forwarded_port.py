"""Berth reached through a forwarded port (`ssh -L 9000:127.0.0.1:8000`): links, redirects, cookies and checks of origin
follow the browser's address, because Berth does not know the other port."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from yarl import URL

from tests.cast import Cast
from tests.shared.sockets import in_thread
from tests.workspaces.ways_in.gateway_stage import Stage, staged
from workspaces.gateway import guests
from workspaces.gateway.hosts import portal_from
from workspaces.models import GatewayPass, Phase, Workspace

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


@asynccontextmanager
async def forwarded(port: int) -> AsyncIterator[int]:
    """Forward another port of this machine to this one, byte for byte."""

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pour(reader, far_writer), pour(far_reader, writer))

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    yield int(server.sockets[0].getsockname()[1])
    server.close()


@pytest.fixture
async def stage(cast: Cast) -> AsyncIterator[Stage]:
    async with staged(cast) as stage:
        yield stage


async def sign_in(stage: Stage, portal: str) -> None:
    """Send the sign-in form as a browser does."""
    async with stage.browser.get(f"{portal}/sign-in/") as page:
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', await page.text())[0]
    body = {"csrfmiddlewaretoken": token, "username": "bob", "password": "bob-password"}
    headers = {"Origin": portal, "Referer": f"{portal}/sign-in/"}
    async with stage.browser.post(f"{portal}/sign-in/", data=body, headers=headers) as answer:
        assert (answer.status, str(answer.url.origin())) == (200, portal)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_everything_stays_on_the_port_and_the_name_that_the_browser_has(
    stage: Stage, name: str
) -> None:
    async with forwarded(stage.port) as port:
        portal, own = f"http://{name}:{port}", f"http://{stage.workspace.pk}.localhost:{port}"
        await sign_in(stage, portal)

        async with stage.browser.get(f"{portal}/workspaces/{stage.workspace.pk}/open/") as answer:
            steps = [str(step.url.origin()) for step in answer.history]
            assert (steps, str(answer.url)) == ([portal, own], f"{own}/lab")
            assert (await answer.json())["headers"]["Host"] == f"{stage.workspace.pk}.localhost:{port}"
        async with stage.browser.ws_connect(f"{own}/socket", headers={"Origin": own}) as socket:
            await socket.receive_json()
            await socket.send_str("hello")
            assert await socket.receive_str() == "hello"
        async with stage.browser.ws_connect(f"{portal}/ws/workspaces/", headers={"Origin": portal}) as socket:
            assert (await socket.receive_json())["type"] == "snapshot"

        await in_thread(Workspace.objects.update)(phase=Phase.STOPPED)
        guests._known.clear()
        await ends_at(stage, f"{own}/lab", f"{portal}/workspaces/{stage.workspace.pk}/")
        await in_thread(GatewayPass.objects.all().delete)()
        guests._known.clear()  # the pass has ended, and still names the portal
        await ends_at(stage, f"{own}/lab", f"{portal}/workspaces/{stage.workspace.pk}/open/?next=/lab")


async def ends_at(stage: Stage, asked: str, expected: str) -> None:
    async with stage.browser.get(asked, headers={"Accept": "text/html"}, allow_redirects=False) as answer:
        assert answer.headers["Location"] == expected


async def test_other_ports_of_this_machine_are_strangers(stage: Stage) -> None:
    async with forwarded(stage.port) as port:
        portal = f"http://localhost:{port}"
        await sign_in(stage, portal)
        for origin in (
            f"http://localhost:{stage.port}",
            "http://localhost",
            f"http://{stage.workspace.pk}.localhost:{port}",
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await stage.browser.ws_connect(f"{portal}/ws/workspaces/", headers={"Origin": origin})
            async with stage.browser.post(f"{portal}/sign-out/", headers={"Origin": origin}) as answer:
                assert answer.status == 403


@pytest.mark.parametrize(
    "claimed",
    ["evil.example", "localhost.evil.example", "localhost@evil.example", "evil.example/", "", "x" * 300],
)
def test_only_names_of_berths_own_are_followed(claimed: str) -> None:
    assert URL(portal_from("any.localhost:9000", claimed)).host == "testserver"


@pytest.mark.parametrize(
    "claimed", ["evil.net/.example.org", "evil.net#.example.org", "u@evil.net:80/x.example.org"]
)
def test_a_pattern_of_names_lets_no_address_through(settings: Any, claimed: str) -> None:
    settings.ALLOWED_HOSTS = [".example.org"]
    assert URL(portal_from("any.localhost:9000", claimed)).host == "testserver"
    assert URL(portal_from("any.localhost:9000", "berth.example.org")).host == "berth.example.org"
