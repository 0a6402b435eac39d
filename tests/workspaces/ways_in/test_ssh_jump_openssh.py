"""Lines that a person copies, tried with OpenSSH's client: commands and ~/.ssh/config through Berth."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from accounts.credentials.secrets import decrypt
from clusters.models import Cluster
from tests.cast import Cast
from tests.shared.sockets import in_thread
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.ways_in.jump_stage import Stage, says, staged
from workspaces.api.representation import with_related, workspace_json
from workspaces.models import Phase, Workspace

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(60),
    pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no OpenSSH client here"),
]


@pytest.fixture
async def stage(cast: Cast, settings: Any) -> AsyncIterator[Stage]:
    async with staged(cast) as stage, sshd(stage):
        settings.SSH_JUMP_HOST, settings.SSH_JUMP_PORT = "127.0.0.1", stage.port
        yield stage


@asynccontextmanager
async def sshd(stage: Stage) -> AsyncIterator[None]:
    """Run the workspace's SSH server at a new address, with its own host key and the person's key."""

    def hello(process: asyncssh.SSHServerProcess[str]) -> None:
        process.stdout.write(f"{process.get_extra_info('username')}: {process.command}\n")
        process.exit(0)

    rows = Workspace.objects.filter(pk=stage.workspace.pk)
    secret = await in_thread(lambda: rows.select_related("secret").get().secret)()
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.import_private_key(decrypt(secret.host_key))],
        authorized_client_keys=asyncssh.import_authorized_keys(
            stage.keys["bob"].export_public_key().decode()
        ),
        process_factory=hello,
        sftp_factory=True,
    )
    await in_thread(rows.update)(ssh_port=server.get_port())
    yield
    server.close()
    await server.wait_closed()


async def shown(stage: Stage, exposure: str) -> dict[str, Any]:
    def ask() -> dict[str, Any]:
        Cluster.objects.update(exposure=exposure)
        row = with_related(Workspace.objects.filter(pk=stage.workspace.pk)).get()
        return dict(workspace_json(row, stage.cast.bob)["endpoints"]["ssh"])

    return dict(await in_thread(ask)())


@pytest.fixture
def home(stage: Stage, tmp_path: Path) -> Path:
    """A person's key and known hosts: none at first, but ssh adds the hosts that it meets."""
    key = tmp_path / "id"
    key.write_bytes(stage.keys["bob"].export_private_key())
    key.chmod(0o600)
    (tmp_path / "own").write_text(
        f"Host *\n    IdentityFile {key}\n    IdentitiesOnly yes\n    BatchMode yes\n"
        f"    UserKnownHostsFile {tmp_path}/known\n    StrictHostKeyChecking accept-new\n"
    )
    return tmp_path


def fingerprints(home: Path) -> set[str]:
    known = [line.split(maxsplit=1) for line in (home / "known").read_text().splitlines()]
    return {asyncssh.import_public_key(key).get_fingerprint() for _host, key in known}


@pytest.mark.parametrize("exposure", Cluster.Exposure.values)
async def test_the_config_leads_there_and_names_both_host_keys(
    stage: Stage, home: Path, exposure: str
) -> None:
    ssh = (await shown(stage, exposure))["jump"]
    (home / "config").write_text(ssh["config"] + (home / "own").read_text())
    nickname = [line.split()[1] for line in ssh["config"].splitlines() if line.startswith("Host ")][-1]
    assert nickname == ("berth-exp-1" if exposure == "portal" else "berth-exp-1-jump")
    assert await says("ssh", "-F", str(home / "config"), nickname, "true") == "jovyan: true\n"
    assert fingerprints(home) == {ssh["host_key_fingerprint"], ssh["jump_host_key_fingerprint"]}
    names = {line.split()[0] for line in (home / "known").read_text().splitlines()}
    assert names == {f"berth-{stage.workspace.pk}", ssh["config"].split()[1]}  # never an address


async def test_one_config_leads_to_each_workspace_by_its_name_also_at_another_address(
    stage: Stage, home: Path
) -> None:
    ssh = (await shown(stage, "load-balancer"))["by_name"]
    (home / "config").write_text(ssh["config"] + (home / "own").read_text())
    say = ["ssh", "-F", str(home / "config")]
    assert (ssh["command"], ssh["user"]) == ("ssh exp-1.bob.berth", "jovyan")
    assert await says(*say, ssh["host"], "true") == "jovyan: true\n"
    names = {line.split()[0] for line in (home / "known").read_text().splitlines()}
    assert names == {"exp-1.bob.berth", ssh["config"].split()[1]}  # never an address
    async with sshd(stage):
        assert await says(*say, "-o", "StrictHostKeyChecking=yes", ssh["host"], "true") == "jovyan: true\n"
        # Another workspace of the same name, in another tenant: from now on the id takes the name's place.
        await in_thread(make_workspace)(stage.cast, stage.cast.bob, Phase.STOPPED, name="EXP-1")
        with pytest.raises(AssertionError, match="No workspace of yours by this name is ready"):
            await says(*say, ssh["host"], "true")
        by_id = (await shown(stage, "portal"))["by_name"]["host"]
        assert by_id == f"{stage.workspace.pk}.bob.berth"
        assert await says(*say, by_id, "true") == "jovyan: true\n"


async def test_the_command_leads_there(stage: Stage, home: Path) -> None:
    command = shlex.split((await shown(stage, "portal"))["command"])
    assert command[:2] == ["ssh", "-J"]
    assert await says("ssh", "-F", str(home / "own"), *command[1:], "whoami") == "jovyan: whoami\n"


async def test_files_go_both_ways(stage: Stage, home: Path) -> None:
    ssh = await shown(stage, "portal")
    (home / "config").write_text(ssh["config"] + (home / "own").read_text())
    (home / "here").write_bytes(b"x" * 3_000_000)
    batch = f"put {home}/here {home}/there\nget {home}/there {home}/back\n"
    await says("sftp", "-q", "-b", "-", "-F", str(home / "config"), "berth-exp-1", given=batch.encode())
    assert (home / "back").stat().st_size == 3_000_000


async def test_a_missing_workspace_is_told_in_words(stage: Stage, home: Path) -> None:
    with pytest.raises(AssertionError, match="No workspace of yours by this name is ready"):
        await says(
            "ssh", "-F", str(home / "own"), "-J", f"bob@127.0.0.1:{stage.port}", "jovyan@nothing", "true"
        )


async def test_the_jump_itself_has_no_shell_no_command_and_no_files(stage: Stage, home: Path) -> None:
    at = ["-F", str(home / "own"), "-p", str(stage.port), "bob@127.0.0.1"]
    for options in ([], ["-t"], ["-A"], ["-R", "0:127.0.0.1:1"]):
        with pytest.raises(AssertionError):
            await says("ssh", *options, "-o", "ExitOnForwardFailure=yes", *at, "true")


async def test_where_nobody_set_up_a_jump_there_is_none_to_show(stage: Stage, settings: Any) -> None:
    assert (await shown(stage, "load-balancer"))["jump"]
    settings.SSH_JUMP_HOST = ""
    assert (await shown(stage, "load-balancer"))["jump"] is None
