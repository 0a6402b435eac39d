"""SSH through Berth: access to the jump, its destinations, what it carries, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncssh
import pytest

from accounts import members
from accounts.credentials import ssh_keys
from accounts.models import AuditEntry, User
from tests.cast import Cast
from tests.shared.sockets import in_thread, until, until_still
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.ways_in.jump_stage import KIB, MIB, Channel, Stage, echoes, new_key, staged
from workspaces.models import Phase, Workspace
from workspaces.ssh_jump import limits
from workspaces.ssh_jump.host_key import ready_key
from workspaces.state.live import changing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


@pytest.fixture
async def stage(cast: Cast) -> AsyncIterator[Stage]:
    async with staged(cast) as stage:
        yield stage


async def ended(channel: Channel) -> None:
    await asyncio.wait_for(channel[0].read(), 10)


# --- Access and destinations


async def test_its_person_reaches_it_by_id_and_by_name(stage: Stage) -> None:
    own_id = str(stage.workspace.pk)
    async with await stage.connect() as connection:
        for name in (own_id, f"berth-{own_id}", "exp-1", "EXP-1", "berth-exp-1"):
            assert await echoes(await stage.open(connection, name))


async def test_nobody_else_gets_there_and_hears_the_same_as_for_what_does_not_exist(stage: Stage) -> None:
    answers = set()
    for person in ("alice", "carol", "victor"):
        async with await stage.connect(person) as connection:
            own_id = stage.workspace.pk
            for name in (str(own_id), f"berth-{own_id}", "exp-1", str(uuid4()), "nothing"):
                answers.add(await stage.refusal(connection, name))
    assert len(answers) == 1
    assert stage.upstream.connections == 0


async def test_a_key_opens_its_own_persons_name_alone(stage: Stage) -> None:
    said = set()
    for person, key in (("alice", "bob"), ("nobody", "bob"), ("bob", "alice"), ("", "bob")):
        with pytest.raises(asyncssh.PermissionDenied) as refused:
            await stage.connect(person or "BOB", key=key)
        said.add(str(refused.value).replace(person or "BOB", "…"))
    assert len(said) == 1


async def test_only_what_is_ready_is_reached(stage: Stage) -> None:
    async with await stage.connect() as connection:
        for phase in set(Phase) - {Phase.READY}:
            await in_thread(Workspace.objects.update)(phase=phase)
            assert "is ready" in (await stage.refusal(connection, "exp-1"))[1]


async def test_a_name_that_two_of_ones_own_share_means_neither(stage: Stage) -> None:
    other = await in_thread(make_workspace)(stage.cast, stage.cast.bob, name="EXP-1", host="127.0.0.1")
    async with await stage.connect() as connection:
        await stage.refusal(connection, "exp-1")
        assert await echoes(await stage.open(connection))
    assert other.pk != stage.workspace.pk


async def test_one_that_does_not_answer_says_so(stage: Stage) -> None:
    await in_thread(Workspace.objects.update)(ssh_port=1)
    async with await stage.connect() as connection:
        assert "does not answer" in (await stage.refusal(connection, "exp-1"))[1]


async def test_refusals_are_in_the_persons_language(stage: Stage) -> None:
    await in_thread(User.objects.filter(username="bob").update)(language="ko")
    async with await stage.connect() as connection:
        code, reason = await stage.refusal(connection, "nothing")
    assert code == asyncssh.OPEN_CONNECT_FAILED
    assert reason


async def test_who_opened_a_tunnel_to_what_stands_in_the_trail_once(stage: Stage) -> None:
    async with await stage.connect() as connection:
        for _ in range(3):
            assert await echoes(await stage.open(connection))
    [entry] = await in_thread(list)(AuditEntry.objects.filter(action="workspace.ssh"))
    assert (entry.actor_name, entry.target_id) == ("bob", str(stage.workspace.pk))
    assert (entry.address, entry.data["name"], entry.tenant_id) == ("127.0.0.1", "exp-1", stage.cast.demo.pk)


async def test_any_number_of_processes_are_one_host(stage: Stage) -> None:
    again = await in_thread(ready_key)("")
    assert again.export_public_key() == stage.host_key.export_public_key()


# --- Carried bytes


async def test_each_side_may_end_its_own_direction(stage: Stage) -> None:
    async with await stage.connect() as connection:
        reader, writer = await stage.open(connection)
        writer.write(b"x" * MIB)
        writer.write_eof()
        assert len(await reader.read()) == MIB
    await asyncio.wait_for(stage.upstream.left.wait(), 10)


async def test_what_the_workspace_says_first_arrives(stage: Stage) -> None:
    async def greets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n" + b"y" * 300 * KIB)

    stage.upstream.does = greets
    async with await stage.connect() as connection:
        reader, _writer = await stage.open(connection)
        assert len(await asyncio.wait_for(reader.read(), 10)) == 11 + 300 * KIB


async def test_a_workspace_that_breaks_off_ends_the_tunnel(stage: Stage) -> None:
    async def breaks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.transport.abort()

    stage.upstream.does = breaks
    async with await stage.connect() as connection:
        channel = await stage.open(connection)
        channel[1].write(b"x")
        await ended(channel)


async def test_a_slow_reader_is_waited_for_and_slows_nobody(stage: Stage) -> None:
    stage.upstream.does = stage.upstream.flood
    async with await stage.connect() as connection:
        slow = await stage.open(connection)
        await asyncio.wait_for(slow[0].readexactly(KIB), 10)
        assert await until_still(lambda: stage.upstream.given_bytes) < 32 * MIB
        stage.upstream.does = stage.upstream.echo
        assert await echoes(await stage.open(connection))
        assert await asyncio.wait_for(slow[0].readexactly(4 * MIB), 10)


async def test_a_workspace_that_takes_nothing_is_sent_no_more_than_a_windowful(stage: Stage) -> None:
    stage.upstream.does = stage.upstream.ignore
    async with await stage.connect() as connection:
        _reader, writer = await stage.open(connection)
        writer.write(b"x" * 64 * MIB)
        drained = asyncio.create_task(writer.drain())
        assert await until_still(writer.channel.get_write_buffer_size) > 32 * MIB
        assert not drained.done()
        drained.cancel()
        stage.upstream.does = stage.upstream.echo
        assert await echoes(await stage.open(connection))


# --- Ends


async def test_who_is_taken_out_of_the_tenant_loses_what_is_open(stage: Stage) -> None:
    async with await stage.connect() as connection:
        channel = await stage.open(connection)
        assert await echoes(channel)
        await in_thread(members.remove)(stage.cast.alice, stage.cast.demo, "bob")
        await ended(channel)
        await stage.refusal(connection, "exp-1")
    await asyncio.wait_for(stage.upstream.left.wait(), 10)


async def test_who_is_deactivated_is_sent_away(stage: Stage) -> None:
    connection = await stage.connect()
    assert await echoes(await stage.open(connection))
    await in_thread(members.set_active)(stage.cast.admin, stage.cast.bob.user, active=False)
    await asyncio.wait_for(connection.wait_closed(), 10)
    with pytest.raises(asyncssh.PermissionDenied):
        await stage.connect()


async def test_a_key_that_is_removed_ends_what_it_opened_and_no_more(stage: Stage) -> None:
    second, _row = await in_thread(new_key)(stage.cast.bob, "desk")
    stage.keys["desk"] = second
    one, other = await stage.connect(), await stage.connect(key="desk")
    channel = await stage.open(other)
    await in_thread(ssh_keys.remove)(stage.cast.bob, stage.own_ids["bob"].pk)
    await asyncio.wait_for(one.wait_closed(), 10)
    assert await echoes(channel)
    other.close()
    with pytest.raises(asyncssh.PermissionDenied):
        await stage.connect()


async def test_a_workspace_that_stops_ends_its_tunnels_alone(stage: Stage) -> None:
    second = await in_thread(make_workspace)(
        stage.cast, stage.cast.bob, name="exp-2", host="127.0.0.1", ssh_port=stage.upstream.port
    )
    async with await stage.connect() as connection:
        stops, stays = await stage.open(connection), await stage.open(connection, str(second.pk))

        def stop() -> None:
            with changing(stage.workspace.pk) as row:
                row.phase = Phase.STOPPING

        await in_thread(stop)()
        await ended(stops)
        assert await echoes(stays)


async def test_an_address_that_changed_ends_the_tunnel_to_the_old_one(stage: Stage) -> None:
    async with await stage.connect() as connection:
        channel = await stage.open(connection)

        def move() -> None:
            with changing(stage.workspace.pk) as row:
                row.host = "127.0.0.2"

        await in_thread(move)()
        await ended(channel)


async def test_who_leaves_leaves_nothing_behind(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TUNNELS_PER_CONNECTION", 8)
    connection = await stage.connect()
    for _ in range(5):
        await stage.open(connection)
    connection.abort()
    await until("all tunnels ended", stage.upstream.left.is_set)
    async with await stage.connect() as again:
        for _ in range(limits.TUNNELS_PER_CONNECTION):
            await stage.open(again)
