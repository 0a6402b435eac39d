"""The SSH jump against people who want more than their own: other hosts, other services, everybody's time."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import asyncssh
import pytest
from django.db import OperationalError

from accounts import members
from accounts.models import Role
from tests.cast import Cast
from tests.shared.sockets import in_thread, until, until_still
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.ways_in.jump_stage import KIB, MIB, Stage, Upstream, echoes, new_key, staged
from workspaces.ssh_jump import carry, guest, limits

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]
REFUSED = (asyncssh.PermissionDenied, asyncssh.DisconnectError, OSError)


@pytest.fixture
async def stage(cast: Cast) -> AsyncIterator[Stage]:
    async with staged(cast) as stage:
        yield stage


# --- Destinations beyond their own workspaces


async def test_no_name_leads_to_an_address(stage: Stage) -> None:
    """Nothing behind the jump can be reached: this machine's services, the cluster, the metadata address."""
    decoy = Upstream()
    server = await asyncio.start_server(decoy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    hosts = [
        "127.0.0.1", "localhost", "0", "0.0.0.0", "::1", "[::1]", "::ffff:127.0.0.1", "2130706433", "127.1",
        "169.254.169.254", "kubernetes.default.svc", "10.96.0.1", "", " ", ".", "..", "*", "%", "_",
        "exp-1.evil.example",
        "exp-1@127.0.0.1", "127.0.0.1#exp-1", "exp-1\r\n", "exp-1\x00", "\x00", "' OR 1=1 --", "é" * 500, "x" * 20_000,
        f"berth-{stage.workspace.pk}.127.0.0.1.nip.io", f"{{{stage.workspace.pk}}}", f"ws-{stage.workspace.pk}",
    ]  # fmt: skip
    async with await stage.connect() as connection:
        answers = {await stage.refusal(connection, host or " ", port) for host in hosts}
        answers |= {await stage.refusal(connection, host or " ", 22) for host in hosts}
    assert len(answers) == 1
    assert decoy.connections == stage.upstream.connections == 0
    server.close()


async def test_of_a_workspace_only_ssh_is_reached(stage: Stage) -> None:
    async with await stage.connect() as connection:
        missing = await stage.refusal(connection, "nothing")
        for port in (0, 1, 23, 80, 5432, 8888, 65535, 2**32 - 1):
            assert await stage.refusal(connection, "exp-1", port) == missing
    assert stage.upstream.connections == 0


async def test_owners_do_not_get_into_others_workspaces_nor_by_a_name_they_share(stage: Stage) -> None:
    async with await stage.connect("alice") as connection:
        missing = await stage.refusal(connection, "exp-1")
        await in_thread(make_workspace)(
            stage.cast, stage.cast.alice, host="127.0.0.1", ssh_port=stage.upstream.port
        )
        await stage.open(connection, "exp-1")  # bob has a workspace of that name, too: hers is opened
        assert await stage.refusal(connection, str(stage.workspace.pk)) == missing


async def test_admins_do_not_get_into_others_workspaces(stage: Stage) -> None:
    stage.keys["admin"], _row = await in_thread(new_key)(stage.cast.admin)
    async with await stage.connect("admin") as connection:
        answers = {await stage.refusal(connection, name) for name in (str(stage.workspace.pk), str(uuid4()))}
    assert len(answers) == 1


async def test_a_viewer_loses_what_they_opened_as_a_member(stage: Stage) -> None:
    async with await stage.connect() as connection:
        channel = await stage.open(connection)
        await in_thread(members.set_role)(stage.cast.alice, stage.cast.demo, "bob", Role.VIEWER)
        await asyncio.wait_for(channel[0].read(), 10)
        await stage.refusal(connection, "exp-1")


async def test_a_right_that_ends_while_a_tunnel_opens_opens_none(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reaches, may_go_on = asyncio.Event(), asyncio.Event()
    reach = carry.reach

    async def slowly(*args: Any, **options: Any) -> Any:
        reaches.set()
        await may_go_on.wait()
        return await reach(*args, **options)

    monkeypatch.setattr(guest, "reach", slowly)
    async with await stage.connect() as connection:
        opening = asyncio.create_task(stage.open(connection))
        await reaches.wait()
        await in_thread(members.remove)(stage.cast.alice, stage.cast.demo, "bob")
        may_go_on.set()
        with pytest.raises(asyncssh.ChannelOpenError):
            await opening
    await asyncio.wait_for(stage.upstream.left.wait(), 10)


# --- Other services than tunnels


async def test_there_is_no_shell_no_command_no_subsystem_no_terminal(stage: Stage) -> None:
    async with await stage.connect() as connection:
        for ask in ({}, {"command": "id"}, {"subsystem": "sftp"}, {"term_type": "xterm"}):
            with pytest.raises(asyncssh.ChannelOpenError):
                await connection.create_process(**ask)
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.start_sftp_client()


async def test_nothing_listens_there_for_anybody(stage: Stage) -> None:
    async with await stage.connect() as connection:
        for host in ("", "127.0.0.1", "0.0.0.0", "localhost"):
            with pytest.raises(asyncssh.ChannelListenError):
                await connection.forward_remote_port(host, 0, "127.0.0.1", 1)
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.forward_remote_path("/tmp/jump-listens", "/tmp/x")


async def test_no_socket_file_and_no_network_device_is_opened(stage: Stage) -> None:
    async with await stage.connect() as connection:
        for path in ("/var/run/docker.sock", "exp-1", f"berth-{stage.workspace.pk}"):
            with pytest.raises(asyncssh.ChannelOpenError):
                await connection.open_unix_connection(path)
        for open_device in (connection.open_tun, connection.open_tap):
            with pytest.raises(asyncssh.ChannelOpenError):
                await open_device()


# --- Signing in as another


async def test_only_keys_let_in(stage: Stage) -> None:
    methods = await asyncssh.get_server_auth_methods("127.0.0.1", stage.port, username="bob", config=None)
    assert methods == ["publickey"]
    for password in ("bob-password", ""):
        with pytest.raises(asyncssh.PermissionDenied):
            await stage.connect(password=password, client_keys=None)


async def test_a_public_key_without_its_private_half_is_worth_nothing(stage: Stage) -> None:
    """Bob's public key is no secret; a signature by another key is not bob's."""
    pair = asyncssh.load_keypairs([stage.keys["alice"]])[0]
    pair.public_data = stage.keys["bob"].public_data
    with pytest.raises(REFUSED):
        await stage.connect(client_keys=[pair])


async def test_a_certificate_of_ones_own_making_is_worth_nothing(stage: Stage) -> None:
    own = asyncssh.generate_private_key("ssh-ed25519")
    for ca in (own, stage.keys["alice"]):
        certificate = ca.generate_user_certificate(own, "bob", principals=["bob", "alice"])
        with pytest.raises(asyncssh.PermissionDenied):
            await stage.connect(client_keys=[(own, certificate)])


async def test_odd_names_are_nobodys_and_reach_no_log(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="workspaces"):
        for name in ("bob ", " bob", "Bob", "'; --", "x" * 2000, "root", "*"):
            with pytest.raises(REFUSED):
                await stage.connect(name, key="bob")
    # Records of asyncio may be about an earlier test.
    assert [record.getMessage() for record in caplog.records if record.name != "asyncio"] == []


async def test_no_more_than_some_keys_are_tried(stage: Stage) -> None:
    keys = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(limits.KEYS_TRIED)]
    with pytest.raises(asyncssh.DisconnectError, match="Too many"):
        await stage.connect(client_keys=[*keys, stage.keys["bob"]])


WEAK: tuple[dict[str, Any], ...] = (
    {"encryption_algs": ["aes128-cbc"]},
    {"compression_algs": ["zlib@openssh.com"]},
    {"kex_algs": ["diffie-hellman-group1-sha1"]},
    {"mac_algs": ["hmac-md5"], "encryption_algs": ["aes256-ctr"]},
)


async def test_what_is_weak_is_not_spoken(stage: Stage) -> None:
    (await stage.connect()).close()
    for weak in WEAK:
        with pytest.raises(REFUSED):
            await stage.connect(**weak)
    stage.keys["bob"] = asyncssh.generate_private_key("ssh-rsa")
    with pytest.raises(REFUSED):
        await stage.connect(signature_algs=["ssh-rsa"])


# --- Everybody's time and memory


async def test_strangers_who_do_nothing_are_sent_away(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOGIN_SECONDS", 0.1)
    async with staged(cast) as stage:
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        assert await asyncio.wait_for(reader.read(), 10)
        assert reader.at_eof()
        writer.close()


async def test_one_address_does_not_take_all_the_places_of_strangers(stage: Stage) -> None:
    waiting = [
        await asyncio.open_connection("127.0.0.1", stage.port) for _ in range(limits.STRANGERS_PER_ADDRESS)
    ]
    for reader, _writer in waiting:
        await reader.readline()  # the connection is counted
    with pytest.raises(REFUSED):
        await stage.connect()
    elsewhere = await asyncio.open_connection("127.0.0.1", stage.port, local_addr=("127.0.0.9", 0))
    assert (await elsewhere[0].readline()).startswith(b"SSH-2.0")
    for _reader, writer in [*waiting, elsewhere]:
        writer.close()
    async with asyncio.timeout(10):
        while True:
            with suppress(*REFUSED):
                (await stage.connect()).close()
                break


async def test_a_stranger_is_not_listened_to_without_end(stage: Stage) -> None:
    """SSH allows messages without meaning before anything is negotiated."""
    body = b"\x02" + asyncssh.packet.String(b"x" * 32_000)
    padding = 8 - (5 + len(body)) % 8 + 8
    ignored = (1 + len(body) + padding).to_bytes(4, "big") + bytes([padding]) + body + b"\x00" * padding
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
    writer.write(b"SSH-2.0-x\r\n" + ignored * 500)
    with suppress(ConnectionError):
        await asyncio.wait_for(writer.drain(), 10)
        await asyncio.wait_for(reader.read(), 10)  # long before its sign-in time is over


async def test_what_is_not_ssh_is_hung_up_on(stage: Stage) -> None:
    for text in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01" * 99,
        b"\x00" * 4096,
        b"SSH-1.5-x\r\n",
        b"\n" * 999,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        writer.write(text)
        writer.write_eof()
        with suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), 10)
        writer.close()
    async with await stage.connect() as connection:
        await stage.open(connection)


@pytest.mark.slow
async def test_a_flood_of_opens_is_cut_short_and_leaves_nothing_behind(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TUNNELS_PER_CONNECTION", 8)
    async with await stage.connect() as connection:
        answers = await asyncio.gather(*(stage.refusal(connection, f"none-{n}") for n in range(100)))
        codes = {code for code, _ in answers}
        assert codes == {asyncssh.OPEN_CONNECT_FAILED, asyncssh.OPEN_RESOURCE_SHORTAGE}
        for _ in range(limits.TUNNELS_PER_CONNECTION):
            await stage.open(connection)
        code, _ = await stage.refusal(connection, "exp-1")
        assert code == asyncssh.OPEN_RESOURCE_SHORTAGE
        async with await stage.connect("alice"):
            pass  # others can still connect


async def test_one_person_holds_only_so_many_connections(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_PER_PERSON", 4)
    async with staged(cast) as stage:
        held = [await stage.connect() for _ in range(4)]
        one_more = await stage.connect()
        await asyncio.wait_for(one_more.wait_closed(), 10)
        held.pop().abort()
        for each in held:
            each.close()
            await each.wait_closed()
        again = await stage.connect()
        await stage.open(again)
        again.close()


def stop_reading(connection: asyncssh.SSHClientConnection) -> asyncio.Transport:
    transport = connection._transport
    assert transport is not None
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, buffer, 16 * KIB)
    transport.pause_reading()
    return transport


async def test_who_promises_to_read_everything_and_reads_nothing_fills_no_memory(stage: Stage) -> None:
    stage.upstream.does = stage.upstream.flood
    connection = await stage.connect()
    for _ in range(4):
        await connection.create_connection(
            asyncssh.SSHTCPSession, "exp-1", 22, window=2**31, max_pktsize=2**20
        )
    await until("the flood began", lambda: stage.upstream.given_bytes)
    read = stage.upstream.given_bytes  # the most that may have been read until now
    stop_reading(connection)
    assert await until_still(lambda: stage.upstream.given_bytes) - read < 128 * MIB
    stage.upstream.does = stage.upstream.echo
    async with await stage.connect() as other:
        assert await echoes(await stage.open(other))
    connection.abort()


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_who_asks_and_never_takes_the_answer_is_no_longer_heard(stage: Stage) -> None:
    connection = await stage.connect()
    wire = stop_reading(connection)
    packet = asyncssh.packet.String("keepalive@openssh.com") + b"\x01"

    async def pester() -> None:
        while wire.get_write_buffer_size() < MIB:
            for _ in range(200):
                connection.send_packet(80, packet)  # a global request that wants a reply
            await asyncio.sleep(0)

    await asyncio.wait_for(pester(), 150)  # so the jump has stopped reading
    async with await stage.connect() as other:
        await stage.open(other)
    connection.abort()


async def test_keys_that_change_under_way_lose_no_byte(stage: Stage) -> None:
    async with await stage.connect(rekey_bytes=MIB) as connection:
        reader, writer = await stage.open(connection)
        writer.write(b"x" * 3 * MIB)
        writer.write_eof()
        assert len(await asyncio.wait_for(reader.read(), 20)) == 3 * MIB


# --- While the database is away


async def test_strangers_wait_and_what_is_open_stays(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*args: Any) -> None:
        raise OperationalError

    async with await stage.connect() as connection:
        channel = await stage.open(connection)
        for name in ("_person_with", "_target_named", "_still"):
            monkeypatch.setattr(guest, name, away)
        assert "Try again" in (await stage.refusal(connection, "exp-1"))[1]
        with pytest.raises(asyncssh.DisconnectError, match="Try again"):
            await stage.connect()
        assert await echoes(channel)


async def test_who_leaves_while_a_tunnel_opens_leaves_nothing_open(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reaches, reach = asyncio.Event(), carry.reach
    gone, lost = asyncio.Event(), guest.Guest.connection_lost

    async def slowly(*args: Any, **options: Any) -> Any:
        far = await reach(*args, **options)
        reaches.set()
        await gone.wait()
        return far

    def connection_lost(self: guest.Guest, error: Exception | None) -> None:
        lost(self, error)
        gone.set()

    monkeypatch.setattr(guest, "reach", slowly)
    monkeypatch.setattr(guest.Guest, "connection_lost", connection_lost)
    connection = await stage.connect()
    opening = asyncio.create_task(stage.open(connection))
    await reaches.wait()
    connection.abort()
    with pytest.raises((asyncssh.ChannelOpenError, *REFUSED)):
        await opening
    await until("the far side is left", stage.upstream.left.is_set)
