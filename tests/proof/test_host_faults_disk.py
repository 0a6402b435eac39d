"""Full disk of the state directory: `make up` reports it, nothing breaks, and Berth goes on once there is room."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from portal.up.plan import REPOSITORY
from tests.e2e.stack import Stack, until
from tests.proof.faulty_world import world_in
from tests.proof.host import SENTENCE, TENANT, Person
from tests.proof.invariants import hold
from tests.small_disk import filled, small_disk

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(400),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk"),
]

Found = Callable[[str, str], None]


@pytest.mark.parametrize(
    ("is_full", "words"), [(False, "No space left on device"), (True, "is full. Make room there")]
)
def test_make_up_says_that_the_disk_is_full(tmp_path: Path, found: Found, is_full: bool, words: str) -> None:
    tmp_path.chmod(0o711)
    with small_disk(tmp_path / "disk", mib=6) as disk, filled(disk) if is_full else nullcontext():
        stack = Stack(tmp_path / "state", BERTH_DEVCLUSTER_PODS="played")
        stack.environ["BERTH_STATE_DIR"] = str(disk)
        up = subprocess.run(
            [sys.executable, "-m", "portal.up"],
            cwd=REPOSITORY,
            env=stack.environ,
            capture_output=True,
            text=True,
            timeout=200,
        )
    assert up.returncode == 1
    assert "Traceback" not in up.stderr
    assert words in up.stderr, up.stderr
    found(f"disk {'full' if is_full else 'too small'} at make up", f"it says: {words}")


def test_the_disk_fills_up_and_has_room_again(tmp_path: Path, found: Found) -> None:
    tmp_path.chmod(0o711)
    with small_disk(tmp_path / "disk", mib=400) as disk, world_in(disk, TENANT) as world:
        stack = world.stack
        alice = Person(stack.client(stack.token("alice", "read", "workspaces")))
        before = [each.result() for each in alice.launch_many("before", 2)]
        with filled(disk):
            until("somebody hears why", lambda: told_why(alice), 60)
            stack.kill("worker")
            time.sleep(10)  # long enough for the database to crash
        late = [each.result() for each in alice.launch_many("late", 2)]
        alice.sees_ready([*before, *late])
        alice.delete([each["id"] for each in alice.ask("GET", f"workspaces/?tenant={TENANT}")["results"]])
        hold(stack, 60)
    found("disk full while it runs", f"told: {SENTENCE} It goes on when there is room")


def told_why(alice: Person) -> bool:
    """Launch a workspace; return True if the full disk refused it."""
    body = {"tenant": TENANT, "name": secrets.token_hex(8), "image": "jupyter", "flavor": "a100-1"}
    status, answer = alice.api("POST", "workspaces/", body)
    assert status in (201, 503), answer
    return status == 503 and answer["error"]["message"] == SENTENCE
