"""Tests that processes left by a killed `make up` are found by pid and start time, and no others are touched."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from devcluster.testing.waiting import until
from portal.up import leftovers

Sleeper = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    started = list[subprocess.Popen[bytes]]()

    def start(*words: str, **environ: str) -> subprocess.Popen[bytes]:
        command = words or ("sleep", "60")
        one = subprocess.Popen(command, env={**os.environ, **environ}, start_new_session=True)
        started.append(one)
        # Popen may come back before the kernel has laid out the environment.
        with suppress(ProcessLookupError):  # it ended meanwhile
            while leftovers.process(one.pid) and not Path(f"/proc/{one.pid}/environ").read_bytes():
                time.sleep(0.001)
        return one

    yield start
    for one in started:
        one.kill()
        one.wait()


def now(one: subprocess.Popen[bytes]) -> leftovers.Process:
    found = leftovers.process(one.pid)
    assert found is not None
    return found


def test_a_recorded_process_is_found_and_ended(tmp_path: Path, sleeper: Sleeper) -> None:
    one = sleeper()
    (tmp_path / "web").write_text(f"{one.pid} {now(one).started}\n")
    found = leftovers.left(tmp_path, tmp_path, ["web"])
    assert found == {now(one)}
    assert leftovers.end(found, signal.SIGTERM, 5) == set()
    assert one.wait(5) == -signal.SIGTERM


def test_a_pid_that_another_process_has_by_now_is_left_alone(tmp_path: Path, sleeper: Sleeper) -> None:
    stranger = sleeper()
    (tmp_path / "web").write_text(f"{stranger.pid} {now(stranger).started - 1}\n")
    assert leftovers.left(tmp_path, tmp_path, ["web"]) == set()
    leftovers.end([leftovers.Process(stranger.pid, now(stranger).started - 1)], signal.SIGKILL, 1)
    assert stranger.poll() is None


def test_children_of_a_killed_part_are_found_by_their_environment(tmp_path: Path, sleeper: Sleeper) -> None:
    orphan = sleeper(BERTH_PART="worker", BERTH_STATE_DIR=str(tmp_path))
    assert leftovers.left(tmp_path, tmp_path, ["worker"]) == {now(orphan)}
    assert leftovers.left(tmp_path, tmp_path, ["web"]) == set()


def test_another_state_directorys_parts_are_not_ours(tmp_path: Path, sleeper: Sleeper) -> None:
    sleeper(BERTH_PART="worker", BERTH_STATE_DIR="/somewhere/else")
    assert leftovers.left(tmp_path, tmp_path, ["worker"]) == set()


@pytest.mark.parametrize("text", ["", "12", "not numbers", "99999999 1"])
def test_a_record_that_says_nothing_finds_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "web").write_text(text)
    assert leftovers.recorded(tmp_path, "web") is None


def test_what_ignores_the_polite_signal_is_told(tmp_path: Path, sleeper: Sleeper) -> None:
    ready = tmp_path / "ready"
    deaf = sleeper("sh", "-c", "trap '' TERM; : > \"$READY\"; exec sleep 60", READY=str(ready))
    until(ready.exists)
    assert leftovers.end({now(deaf)}, signal.SIGTERM, 0.2) == {now(deaf)}
    assert leftovers.end({now(deaf)}, signal.SIGKILL, 5) == set()


def test_a_zombie_counts_as_gone(sleeper: Sleeper) -> None:
    one = sleeper("true")
    until(lambda: leftovers.process(one.pid) is None)
