"""The main job from end to end: from the sign-in page to a notebook and an SSH login, and back to nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.driver import Lab, Portal, SSHClient, browser
from tests.e2e.stack import Client, Stack, until
from tests.workspaces.package import make_package

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

STEPS = [
    "request",
    "admission",
    "disk",
    "container",
    "scheduled",
    "image",
    "mounts",
    "started",
    "endpoint",
    "ready",
]
MY_ENV = 'it\'s "quoted" $HOME \\ and 한글'
KINDS = ("Pod", "StatefulSet", "Service", "Secret", "ConfigMap", "Job", "PersistentVolumeClaim")


@pytest.fixture(scope="session")
def berth() -> Iterator[Stack]:
    with tempfile.TemporaryDirectory(prefix="berth-journey-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        stack = Stack(Path(folder) / "state")
        stack.start()
        try:
            yield stack
        finally:
            stack.stop()


def test_from_sign_in_to_a_notebook_and_ssh_and_back_to_nothing(berth: Stack, tmp_path: Path) -> None:
    ssh, alice = SSHClient(tmp_path), berth.client(berth.token("alice", "read"))
    with browser(berth.address, "journey") as context:
        portal = Portal(context)
        portal.sign_in("alice")
        portal.add_key(ssh.public_key)

        portal.launch("journey", flavor="a100-1", environment={"MY_ENV": MY_ENV})
        portal.wait_for("ready")
        workspace = urlsplit(portal.page.url).path.split("/")[2]
        watched_ten_steps(alice, portal, workspace)
        gpus_in_use(alice, 1)

        ssh.use(portal.copyable("SSH command"))
        assert ssh.run("whoami").strip() == "jovyan"
        assert ssh.fingerprint() == portal.copyable("Fingerprint of the host key")
        files_go_both_ways(ssh, tmp_path)

        lab = Lab(context, portal)
        lab.open_notebook()
        lab.run("1+1", "2")
        lab.run("%pip install ./greeting", "Successfully installed greeting-1.0")
        lab.run("import greeting; greeting.word", "hello")
        same_in_terminal_and_over_ssh(lab, ssh)
        lab.close()

        ssh.run("echo kept > written-over-ssh")
        portal.stop()
        portal.wait_for("stopped")
        gpus_in_use(alice, 0)
        portal.press("start")
        portal.wait_for("ready")
        ssh.use(portal.copyable("SSH command"))
        assert ssh.run("cat written-over-ssh; greet; python -c 'import greeting'") == "kept\nhello\n"
        assert ssh.fingerprint() == portal.copyable("Fingerprint of the host key")

        portal.delete_with_files()
        until("nothing of it in the cluster", lambda: objects_of(berth, workspace) == [])
        gpus_in_use(alice, 0)
        portal.page.goto("/")
        assert "journey" not in portal.page.locator("main").inner_text()
        assert portal.faults == []


def watched_ten_steps(alice: Client, portal: Portal, workspace: str) -> None:
    """The page showed them live and in order; the socket brought each event once; the story has all ten."""
    seen = portal.steps_seen()
    assert seen == sorted(seen) and len(seen) >= 2, seen
    numbers = [event["id"] for event in portal.events]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    events = alice.everything(f"workspaces/{workspace}/events/")
    told = [event["step"] for event in events]
    assert sorted(set(told), key=told.index) == STEPS
    assert numbers[-1] == events[-1]["id"] and len(numbers) >= len(events) - 3, (numbers, told)


def files_go_both_ways(ssh: SSHClient, folder: Path) -> None:
    make_package(folder / "greeting")
    ssh.sftp(f"put -r {folder}/greeting", f"get greeting/backend.py {folder}/back")
    assert (folder / "back").read_bytes() == (folder / "greeting" / "backend.py").read_bytes()


def same_in_terminal_and_over_ssh(lab: Lab, ssh: SSHClient) -> None:
    lab.type_in_terminal('{ which python; echo "$MY_ENV"; } > told; mv told from-terminal')
    until("the terminal's answer", lambda: "from-terminal" in ssh.run("ls"))
    over_ssh = ssh.run('which python; echo "$MY_ENV"')
    assert ssh.run("cat from-terminal") == over_ssh
    assert over_ssh.splitlines()[1] == MY_ENV


def gpus_in_use(alice: Client, expected: int) -> None:
    """What the pool counts as this person's: an admitted claim, and nothing else."""

    def counted() -> bool:
        pool = next(pool for pool in alice.everything("pools/") if pool["slug"] == "a100")
        return bool(pool["gpus"]["mine"] == expected)

    until(f"{expected} GPUs in use", counted)


def objects_of(berth: Stack, workspace: str) -> list[str]:
    """What is left of it in the cluster; volumes know it by their claim's name only."""
    labelled = [
        body for kind in KINDS for body in berth.in_cluster(kind, **{"berth.dev/workspace": workspace})
    ]
    volumes = berth.in_cluster("PersistentVolume")
    its_own = [
        volume for volume in volumes if workspace in volume["spec"].get("claimRef", {}).get("name", "")
    ]
    return [f"{item['kind']}/{item['metadata']['name']}" for item in [*labelled, *its_own]]
