"""Colleagues with whom a workspace is shared: what opens for each role, and that everything ends within two seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress

import asyncssh
import pytest
from django.test import Client

from accounts import members
from accounts.access import Actor
from accounts.credentials import ssh_keys
from accounts.models import Membership, Role, User
from tests.cast import Cast
from tests.shared.log_rows import make_stream, write
from tests.shared.sockets import in_thread
from tests.workspaces.ways_in import jump_stage
from tests.workspaces.ways_in.gateway_stage import Stage, staged
from tests.workspaces.ways_in.opened import Opened, at_jupyter
from workspaces.models import Share, Workspace
from workspaces.runs import lifecycle, sharing
from workspaces.state import jupyter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]
SECONDS = 2.0


def make_colleague(cast: Cast) -> Actor:
    dora = Actor(User.objects.create_user("dora"))
    Membership.objects.create(tenant=cast.demo, user=dora.user, role=Role.MEMBER)
    return dora


@pytest.fixture
async def stage(cast: Cast) -> AsyncIterator[Stage]:
    async with staged(cast) as stage:
        write_log = lambda: write(make_stream(cast.demo, stage.workspace.pk, "workspace"), ["began"])  # noqa: E731
        await in_thread(write_log)()
        yield stage


def direct_token(workspace: Workspace) -> str:
    return jupyter.token(Workspace.objects.select_related("secret").get(pk=workspace.pk))


def share(stage: Stage, role: str) -> Share:
    return sharing.share(stage.cast.bob, stage.workspace, "dora", role)[0]


async def opened_by(actor: Actor, stage: Stage, stack: AsyncExitStack) -> Opened:
    """Open by the person's browser what the role allows: pages' sockets, logs, and Jupyter if the portal hands over.

    Who may open Jupyter read its token there, and opens a terminal by that, too.
    """
    opened = Opened(stage, stack)
    client = Client(headers={"Host": f"localhost:{stage.port}"})
    await in_thread(client.force_login)(actor.user)
    answer = await in_thread(client.get)(f"/workspaces/{stage.workspace.pk}/open/")
    if answer.status_code == 302:
        token = await in_thread(direct_token)(stage.workspace)
        headers = {"Authorization": f"token {token}"}
        await opened.websocket("by Jupyter's token", stage.at("/socket"), headers)  # before it has a pass
        async with stage.browser.get(answer["Location"], allow_redirects=False):
            pass
        await at_jupyter(opened, stage, {})
    headers = opened.of_session(client)
    await opened.websocket("log", opened.at_berth(f"/ws/workspaces/{stage.workspace.pk}/logs/"), headers)
    path = f"/api/v1/workspaces/{stage.workspace.pk}/logs/?follow=true"
    await opened.stream("log as text", opened.at_berth(path), headers)
    return opened


def revoke(cast: Cast, row: Share) -> None:
    sharing.end(cast.bob, row.workspace, row.pk)


def remove(cast: Cast, row: Share) -> None:
    members.remove(cast.alice, cast.demo, "dora")


def remove_owner(cast: Cast, row: Share) -> None:
    members.remove(cast.alice, cast.demo, "bob")


def deactivate(cast: Cast, row: Share) -> None:
    members.set_active(cast.admin, row.user, active=False)


def delete_person(cast: Cast, row: Share) -> None:
    members.delete_person(cast.admin, row.user)


def delete(cast: Cast, row: Share) -> None:
    lifecycle.delete(cast.bob, row.workspace)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loses",
    [revoke, remove, remove_owner, deactivate, delete_person, delete],
    ids=lambda loses: loses.__name__,
)
async def test_what_a_colleague_has_open_ends_within_two_seconds(
    stage: Stage, loses: Callable[[Cast, Share], None]
) -> None:
    dora = await in_thread(make_colleague)(stage.cast)
    row = await in_thread(share)(stage, "work")
    async with AsyncExitStack() as stack:
        opened = await opened_by(dora, stage, stack)
        assert (await stage.get("/api/kernels"))[0] == 200
        begun = time.monotonic()
        await in_thread(loses)(stage.cast, row)
        await opened.have_ended(seconds=SECONDS)
        while (await stage.get("/api/kernels"))[0] == 200:
            assert time.monotonic() - begun < SECONDS
            await asyncio.sleep(0.05)
    if loses is delete_person:
        return
    again = await in_thread(User.objects.get)(username="dora")
    await in_thread(members.set_active)(stage.cast.admin, again, active=True)
    await in_thread(members.set_role)(stage.cast.alice, stage.cast.demo, "dora", Role.MEMBER)
    assert not await stage.link(Actor(again)), "a right that ended does not come back with the membership"


@pytest.mark.slow
async def test_to_look_opens_logs_and_no_jupyter_and_narrowing_ends_it(stage: Stage) -> None:
    dora = await in_thread(make_colleague)(stage.cast)
    assert not await stage.link(dora)
    async with AsyncExitStack() as stack:  # a member whom the owner did not name reads no log
        with pytest.raises(TypeError, match="8:4404"):
            await opened_by(dora, stage, stack)
    await in_thread(share)(stage, "look")
    assert not await stage.link(dora)
    await in_thread(share)(stage, "work")
    async with AsyncExitStack() as stack:
        opened = await opened_by(dora, stage, stack)
        await in_thread(share)(stage, "look")
        await opened.have_ended("kernel", "download", "upload", "by Jupyter's token", seconds=SECONDS)
        logs = asyncio.gather(*opened.ends.values())
        await asyncio.sleep(SECONDS)
        assert not logs.done()
        logs.cancel()


class Way:
    """Stands where Jupyter would: leads who brings the gateway's token to an SSH server that echoes."""

    def __init__(self, workspace: Workspace) -> None:
        self.token = jupyter.gateway_token(workspace)
        self.left = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        known = head.startswith("GET /berth/ssh ") and f"Authorization: token {self.token}\r\n" in head
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\nSSH-" if known else b"HTTP/1.1 403 No\r\n\r\n")
        with suppress(ConnectionError):
            while known and (piece := await reader.read(65536)):
                writer.write(piece)
        writer.close()
        self.left.set()


async def test_ssh_of_a_colleague_leads_through_jupyter_and_ends_with_the_share(cast: Cast) -> None:
    async with jump_stage.staged(cast) as stage:
        dora = await in_thread(make_colleague)(cast)
        key = asyncssh.generate_private_key("ssh-ed25519")
        await in_thread(ssh_keys.add)(dora, "laptop", key.export_public_key().decode())
        way = await in_thread(
            lambda: Way(Workspace.objects.select_related("secret").get(pk=stage.workspace.pk))
        )()
        server = await asyncio.start_server(way, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        rows = Workspace.objects.filter(pk=stage.workspace.pk)
        await in_thread(rows.update)(jupyter_host="127.0.0.1", jupyter_port=port)

        async with await stage.connect("dora", client_keys=[key]) as connection:
            name = f"berth-{stage.workspace.pk}"
            assert (await stage.refusal(connection, name))[0] == asyncssh.OPEN_CONNECT_FAILED
            await in_thread(sharing.share)(cast.bob, stage.workspace, "dora", "look")
            assert await stage.refusal(connection, name)
            row, _changed = await in_thread(sharing.share)(cast.bob, stage.workspace, "dora", "work")
            channel = await stage.open(connection)
            assert await channel[0].readexactly(4) == b"SSH-"
            assert await jump_stage.echoes(channel)
            assert stage.upstream.connections == 0, "the workspace's own address is its owner's"
            await in_thread(sharing.end)(cast.bob, stage.workspace, row.pk)
            await asyncio.wait_for(way.left.wait(), SECONDS)
            assert await asyncio.wait_for(channel[0].read(), SECONDS) == b""
            assert await stage.refusal(connection, name)
        server.close()
