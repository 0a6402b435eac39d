"""The command `berth` from its wheel, in an empty environment, against a running Berth."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.up.plan import REPOSITORY
from tests.e2e.stack import Stack, running, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]
MUCH_MIB = 16
COUNTING = "import time\nfor number in range(1, 10**6):\n    print(f'line {number}', flush=True)\n    time.sleep(0.2)"


class Terminal:
    """A person's machine: an environment with `berth` alone, a home, and an SSH key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.berth = folder / "venv" / "bin" / "berth"
        install(folder)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me@laptop", "-f", folder / "key"],
            check=True,
        )
        config = folder / "ssh" / "config"
        config.parent.mkdir(mode=0o700)
        config.write_text(
            f"Host *\n    IdentityFile {folder / 'key'}\n    IdentitiesOnly yes\n    BatchMode yes\n"
        )
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG")}
        self.environ = kept | {"XDG_CONFIG_HOME": str(folder / "config"), "BERTH_SSH_CONFIG": str(config)}

    def __call__(self, *arguments: str, code: int = 0, **options: Any) -> str:
        command = [str(self.berth), *arguments]
        done = subprocess.run(
            command,
            env=self.environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **options,
        )
        assert done.returncode == code, (
            f"{command}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
        return done.stdout

    def begin(self, *arguments: str, output: Path) -> subprocess.Popen[bytes]:
        with output.open("wb") as file:
            return subprocess.Popen(
                [str(self.berth), *arguments], env=self.environ, stdout=file, stderr=subprocess.STDOUT
            )


def install(folder: Path) -> None:
    """Build the wheel and install it in an empty environment, in the versions that the tests have."""
    uv = [sys.executable, "-m", "uv"]
    package = REPOSITORY / "packages" / "berth"
    subprocess.run(
        [*uv, "build", "--quiet", "--offline", "--wheel", "--out-dir", folder / "dist", package], check=True
    )
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    pins = REPOSITORY / "requirements" / "test.txt"
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", python, "--constraint", pins, wheel], check=True
    )


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running("cli") as stack:
        yield stack


def test_from_the_wheel_to_a_workspace_a_command_a_copy_and_a_job(stack: Stack, tmp_path: Path) -> None:
    berth = Terminal(tmp_path)
    token = stack.token("alice", "read", "workspaces", "jobs")
    berth("ls", code=4)
    berth("login", stack.address, "--with-token", input=token)
    assert (tmp_path / "config" / "berth" / "sites.json").stat().st_mode & 0o777 == 0o600
    berth("keys", "add", str(tmp_path / "key.pub"))

    ready = json.loads(berth("launch", "exp-1", "--flavor", "cpu-small", "--json"))
    assert (ready["phase"], ready["progress"]["index"]) == ("ready", 10)
    assert berth("ls").split("\t")[:2] == ["exp-1", "ready"]

    assert berth("ssh", "exp-1", "echo $((6 * 7)); whoami") == "42\njovyan\n"
    berth("ssh", "exp-1", "exit 3", code=3)
    copies_both_ways(berth)
    follows_a_log_over_a_restart(berth, stack)

    berth("stop", "exp-1")
    until("stopped", lambda: json.loads(berth("ls", "--json"))[0]["phase"] == "stopped")
    berth("ssh", "exp-1", "true", code=7)
    berth("ssh", "nothing", "true", code=5)


def copies_both_ways(berth: Terminal) -> None:
    sent = os.urandom(MUCH_MIB * 2**20)
    (berth.folder / "much").write_bytes(sent)
    berth("cp", "much", "exp-1:much")
    assert hashlib.sha256(sent).hexdigest() in berth("ssh", "exp-1", "sha256sum much")
    berth("cp", "exp-1:much", "back")
    assert (berth.folder / "back").read_bytes() == sent


def follows_a_log_over_a_restart(berth: Terminal, stack: Stack) -> None:
    """Every line comes once, in order, though web is gone for a while."""
    berth("jobs", "submit", "count", "--flavor", "cpu-small", "--", "python", "-c", COUNTING)
    shown = berth.folder / "shown"
    following = berth.begin("jobs", "logs", "count", "--all", "--follow", output=shown)

    def lines() -> list[str]:  # without what berth says while it waits for an answer
        return [line for line in shown.read_text().splitlines() if not line.startswith("berth: ")]

    until("first lines", lambda: len(lines()) > 5, 120)
    stack.supervise("stop", "web")
    time.sleep(3)
    before = len(lines())
    stack.supervise("start", "web")
    until("lines after the restart", lambda: len(lines()) > before + 10, 120)
    berth("jobs", "cancel", "count")
    assert following.wait(120) == 0
    assert lines() == [f"line {number}" for number in range(1, len(lines()) + 1)]
