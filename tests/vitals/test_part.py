"""Parts that start before their database: they wait and show that they live, and end when told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from portal.up.plan import REPOSITORY
from vitals import part
from vitals.models import Process, Release
from vitals.release import RELEASE


@pytest.mark.django_db
def test_a_part_waits_for_migrations_and_shows_that_it_lives(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SIGN_OF_LIFE = str(tmp_path / "alive")
    monkeypatch.setattr(connections["default"], "close", lambda: None)  # the test's transaction is in it
    assert part.what_is_missing() == ""
    recorder = MigrationRecorder(connections["default"])
    recorder.record_unapplied("vitals", "0001_initial")
    waits: list[float] = []

    def applied_after_the_second(seconds: float) -> bool:
        assert (tmp_path / "alive").exists()
        waits.append(seconds)
        if len(waits) == 2:
            recorder.record_applied("vitals", "0001_initial")
        return False

    part.wait_until_ready(applied_after_the_second)
    assert len(waits) == 2


@pytest.mark.django_db
@pytest.mark.parametrize(("oldest", "starts"), [(RELEASE - 1, True), (RELEASE, True), (RELEASE + 1, False)])
def test_a_part_waits_while_the_database_takes_newer_releases_alone(
    monkeypatch: pytest.MonkeyPatch, oldest: int, starts: bool
) -> None:
    monkeypatch.setattr(connections["default"], "close", lambda: None)
    Release.objects.update_or_create(pk=1, defaults={"number": RELEASE + 1, "oldest": oldest})
    assert (part.what_is_missing() == "") is starts


def until(what: str, look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@pytest.fixture
def away(tmp_path: Path) -> Iterator[Path]:
    """The folder of a database's socket, which is not there yet."""
    yield tmp_path / "socket"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("name", "command"),
    [("worker", "worker"), ("watcher", "watch"), ("collector", "collect"), ("ssh-jump", "ssh_jump")],
)
def test_each_part_starts_once_its_database_is_there(
    name: str, command: str, away: Path, tmp_path: Path
) -> None:
    database = connections["default"].settings_dict
    life = tmp_path / "alive"
    environ = {
        **os.environ,
        "BERTH_ROLE": name,
        "BERTH_SSH_JUMP_LISTEN": "127.0.0.1:0",
        "BERTH_SIGN_OF_LIFE": str(life),
        "DATABASE_URL": f"postgres://{database['USER']}@/{database['NAME']}?host={away}",
    }
    process = subprocess.Popen([sys.executable, "manage.py", command], cwd=REPOSITORY, env=environ)
    try:
        until("it waits", life.exists)
        begun = Path(f"{life}.begun")
        assert process.poll() is None and not begun.exists()
        away.symlink_to(database["HOST"])
        until("it is heard", Process.objects.filter(part=name).exists)
        assert begun.exists()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_part_that_waits_ends_when_told_to(tmp_path: Path) -> None:
    life = tmp_path / "alive"
    environ = {
        **os.environ,
        "BERTH_SIGN_OF_LIFE": str(life),
        "DATABASE_URL": f"postgres://berth@/berth?host={tmp_path}",
    }
    process = subprocess.Popen([sys.executable, "manage.py", "watch"], cwd=REPOSITORY, env=environ)
    until("it waits", life.exists)
    process.terminate()
    assert process.wait(30) == 0
