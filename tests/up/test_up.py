"""Tests of the whole `make up`: it starts, refuses a second one, survives kills, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from portal.up import leftovers
from portal.up.plan import REPOSITORY
from tests.e2e import prepared
from tests.e2e.stack import Stack, until

pytestmark = pytest.mark.timeout(600)
STOP_SECONDS = 15  # usually about 4; a busy machine takes longer


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    monkeypatch.delenv(prepared.FOLDER)  # the test needs a start from nothing
    tmp_path.chmod(0o711)
    stack = Stack(tmp_path / "state", BERTH_DEVCLUSTER_PODS="played")
    yield stack
    for left in running(stack):
        os.kill(left, signal.SIGKILL)


def running(stack: Stack) -> list[int]:
    """Return all processes of this state directory, found by their environment or command line."""
    here = os.fsencode(stack.folder)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and leftovers.process(int(entry.name)):
            try:
                about = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if here in about:
                found.append(int(entry.name))
    return found


def log(stack: Stack) -> str:
    return (stack.folder / "up.log").read_text()


@pytest.mark.slow
def test_from_the_first_start_to_a_clean_end(stack: Stack) -> None:
    stack.start()
    until("the welcome", lambda: "Ctrl-C stops everything" in log(stack))
    for words in (stack.address, "alice", "a-password-for-tests", "issue_token", "PostgreSQL"):
        assert words in log(stack)

    second = subprocess.run(
        [sys.executable, "-m", "portal.up"], cwd=REPOSITORY, env=stack.environ, capture_output=True, text=True
    )
    assert second.returncode == 1
    assert "already runs on" in second.stderr
    assert "Traceback" not in second.stderr

    assert stack.stop() < STOP_SECONDS
    assert running(stack) == []


@pytest.mark.slow
def test_killed_parts_come_back_and_a_killed_supervisor_leaves_a_clean_start(stack: Stack) -> None:
    stack.start()
    for part in ("web", "worker", "watcher", "collector", "ssh-jump"):
        killed = stack.pid(part)
        stack.kill(part)
        until(f"{part} started again", partial(is_new, stack, part, killed), 20)
    until("ready again", stack.is_ready, 30)

    os.kill(stack.pid("supervisor"), signal.SIGKILL)
    assert stack.process is not None
    assert stack.process.wait(30) == 1
    until("its parts ended with it", lambda: not running(stack), 30)
    assert "supervisor was killed" in log(stack)

    assert stack.start() < 60
    assert stack.stop() < STOP_SECONDS


@pytest.mark.long
def test_after_everything_was_killed_the_next_start_is_clean(stack: Stack) -> None:
    stack.start()
    for pid in running(stack):
        os.kill(pid, signal.SIGKILL)
    assert stack.process is not None
    stack.process.wait(5)
    stack.start()
    assert stack.stop() < STOP_SECONDS
    assert running(stack) == []


@pytest.mark.long
def test_a_start_in_the_background_with_sigint_ignored_stops_on_sigterm(stack: Stack) -> None:
    with (stack.folder / "up.log").open("ab") as output:
        shell = subprocess.Popen(
            ["sh", "-c", f"trap '' INT; exec {sys.executable} -m portal.up"],
            cwd=REPOSITORY,
            env=stack.environ,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    stack.process = shell
    until("ready", stack.is_ready, 90)
    began = time.monotonic()
    shell.terminate()
    assert shell.wait(30) == 0
    assert time.monotonic() - began < STOP_SECONDS
    assert running(stack) == []


def is_new(stack: Stack, part: str, killed: int) -> bool:
    found = leftovers.recorded(stack.folder / "processes", part)
    return found is not None and found.pid != killed
