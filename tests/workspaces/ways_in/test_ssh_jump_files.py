"""Files of volumes over SFTP at the jump, with the program of a files session on a folder of this machine."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from asyncssh import SFTPClient

from accounts.credentials.secrets import encrypt
from accounts.models import Membership, SSHKey
from storage.models import FilesPhase, FilesSession, Volume
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.files_pod import TOKEN, served
from tests.shared.sockets import in_thread
from tests.workspaces.ways_in.jump_stage import Stage, says, staged
from workspaces.ssh_jump import files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


@pytest.fixture
async def stage(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(files, "RECHECK_SECONDS", 0.1)
    monkeypatch.setattr(files, "LOOK_SECONDS", 0.02)
    async with staged(cast) as stage:
        yield stage


def volume_of(cast: Cast, name: str = "scans", **values: Any) -> Volume:
    common = {"tenant": cast.demo, "cluster": cast.cluster, "requested_mib": 1024, "access": "rwx"}
    cast.cluster.files_image = "berth.local/files:1"
    cast.cluster.save()
    return Volume.objects.create(
        **common | {"owner": cast.bob.user, "name": name, "kind": "dataset", "phase": "ready"} | values
    )


def opened(cast: Cast, port: int, volume: Volume, **values: Any) -> FilesSession:
    known = {"by": cast.bob.user, "token": encrypt(TOKEN), "writes": True, "phase": FilesPhase.READY}
    return FilesSession.objects.create(volume=volume, host=f"127.0.0.1:{port}", **known | values)


async def sftp(stage: Stage, person: str, volume: str) -> SFTPClient:
    connection = await stage.connect(f"{person}+{volume}", client_keys=[stage.keys[person]])
    return await connection.start_sftp_client()


async def test_the_owner_reads_and_writes_and_others_read_what_is_shared_to_read(
    stage: Stage, tmp_path: Path
) -> None:
    with served(tmp_path) as pod:
        volume = await in_thread(volume_of)(stage.cast, shared="read")
        session = await in_thread(opened)(stage.cast, pod.port, volume)
        theirs = await sftp(stage, "bob", "scans")
        async with theirs.open("a.csv", "wb") as file:
            await file.write(b"x" * 300_000)
        assert (pod.folder / "a.csv").stat().st_size == 300_000

        alice = await sftp(stage, "alice", "SCANS")
        assert await alice.listdir("/") == ["a.csv"]
        with pytest.raises(asyncssh.SFTPPermissionDenied):
            await alice.remove("a.csv")
        by_id = await sftp(stage, "alice", str(volume.pk))
        assert (await by_id.stat("a.csv")).size == 300_000

        await in_thread(FilesSession.objects.filter(pk=session.pk).update)(phase=FilesPhase.ENDING)
        with pytest.raises((asyncssh.SFTPError, asyncssh.ConnectionLost)):
            async with asyncio.timeout(20):
                while True:
                    await theirs.listdir("/")
                    await asyncio.sleep(0.05)


async def test_a_session_is_started_and_waited_for(stage: Stage, tmp_path: Path) -> None:
    with served(tmp_path) as pod:
        volume = await in_thread(volume_of)(stage.cast)
        asks = asyncio.create_task(sftp(stage, "bob", "scans"))
        sessions = FilesSession.objects.filter(volume=volume, by=stage.cast.bob.user)
        for _ in range(1000):  # the jump's own look-ups share the thread
            if await in_thread(sessions.exists)():
                break
            await asyncio.sleep(0.02)
        ready = {"host": f"127.0.0.1:{pod.port}", "token": encrypt(TOKEN), "phase": FilesPhase.READY}
        assert not asks.done()
        await in_thread(sessions.update)(**ready)
        assert await (await asks).listdir("/") == []


@pytest.mark.parametrize("lost", ["key", "member"])
async def test_it_ends_with_the_right_to_it(stage: Stage, tmp_path: Path, lost: str) -> None:
    with served(tmp_path) as pod:
        volume = await in_thread(volume_of)(stage.cast)
        await in_thread(opened)(stage.cast, pod.port, volume)
        theirs = await sftp(stage, "bob", "scans")
        rows: Any = SSHKey if lost == "key" else Membership
        await in_thread(rows.objects.filter(user=stage.cast.bob.user).delete)()
        with pytest.raises((asyncssh.SFTPError, asyncssh.ConnectionLost, asyncssh.DisconnectError)):
            async with asyncio.timeout(20):
                while True:
                    await theirs.listdir("/")
                    await asyncio.sleep(0.05)


async def refused(stage: Stage, person: str, volume: str) -> str:
    """Return what the person reads on their terminal."""
    connection = await stage.connect(f"{person}+{volume}", client_keys=[stage.keys[person]])
    process = await connection.create_process(subsystem="sftp", encoding=None)
    text = await asyncio.wait_for(process.stderr.read(), 30)
    connection.close()
    return bytes(text or b"").decode()


async def test_who_may_not_open_it_is_told_the_same_as_if_it_were_not_there(stage: Stage) -> None:
    await in_thread(volume_of)(stage.cast)
    answers = [await refused(stage, person, "scans") for person in ("alice", "victor", "carol")]
    assert set(answers) == {(await refused(stage, "bob", "scans-2")).replace("scans-2", "scans")}
    assert await in_thread(FilesSession.objects.count)() == 0


async def test_of_two_with_one_name_the_own_one_is_opened_and_else_none(stage: Stage) -> None:
    cast = stage.cast
    for owner in (cast.alice, cast.bob):
        await in_thread(volume_of)(cast, owner=owner.user, shared="read")
    await in_thread(cast.demo.memberships.filter(user=cast.victor.user).update)(role="member")
    assert "Several" in await refused(stage, "victor", "scans")


async def test_only_sftp_is_spoken_and_only_for_a_volume(stage: Stage) -> None:
    await in_thread(volume_of)(stage.cast)
    async with await stage.connect("bob+scans", client_keys=[stage.keys["bob"]]) as connection:
        for ask in ({}, {"command": "id"}, {"subsystem": "netconf"}):
            with pytest.raises(asyncssh.ChannelOpenError):
                await connection.create_process(**ask)
    async with await stage.connect("bob") as connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.start_sftp_client()
    with pytest.raises(asyncssh.PermissionDenied):
        await stage.connect("alice+scans", client_keys=[stage.keys["bob"]])


@pytest.mark.skipif(shutil.which("sftp") is None, reason="there is no OpenSSH client here")
async def test_openssh_reaches_it_by_the_command_of_the_page(
    stage: Stage, tmp_path: Path, settings: Any
) -> None:
    settings.SSH_JUMP_HOST, settings.SSH_JUMP_PORT = "127.0.0.1", stage.port
    key = tmp_path / "id"
    key.write_bytes(stage.keys["bob"].export_private_key())
    key.chmod(0o600)
    (tmp_path / "here").write_bytes(b"x" * 3_000_000)
    options = [
        "-i",
        str(key),
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        f"UserKnownHostsFile={tmp_path}/known",
        "-q",
    ]
    with served(tmp_path) as pod:
        volume = await in_thread(volume_of)(stage.cast)
        await in_thread(opened)(stage.cast, pod.port, volume)
        page = await in_thread(lambda: browser(stage.cast.bob).get(f"/volumes/{volume.pk}/files/").content)()
        command = f"sftp -P {stage.port} bob+scans@127.0.0.1"
        assert command in page.decode()
        program, *rest = shlex.split(command)
        batch = f"put {tmp_path}/here there\nget there {tmp_path}/back\n"
        await says(program, *options, "-b", "-", *rest, given=batch.encode())
        assert (tmp_path / "back").stat().st_size == 3_000_000
        scp = ["scp", *options, "-P", str(stage.port), str(tmp_path / "here"), "bob+scans@127.0.0.1:copied"]
        await says(*scp)
        assert (pod.folder / "copied").stat().st_size == 3_000_000
