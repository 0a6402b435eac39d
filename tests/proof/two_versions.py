"""An earlier version of Berth beside this one: its tree, parts that are replaced one by one, and people meanwhile."""

from __future__ import annotations

import os
import subprocess
import tarfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import pytest

from portal.up import leftovers
from portal.up.plan import REPOSITORY, programs
from portal.up.state import State
from tests.e2e.stack import Client, Stack, until
from tests.shared.ports import free_port

FROM = "BERTH_UPGRADE_FROM"
"""Variable that names the commit to upgrade from."""
FIRST = "4c8a8b0cf7616e4775711d782b63751b744de68a"
"""Commit to upgrade from while no release has a tag."""
HEARD = "SELECT pid FROM vitals_process WHERE part = %s AND seen_at > now() - interval '6 seconds'"
LEFT_SECONDS = 1.0
"""Time between the last request to a web process and its end; in Kubernetes, preStop waits longer."""


def git(*words: str) -> bytes | None:
    done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def earlier_tree(folder: Path) -> Path:
    """Write the tree of the version before; skip the test if this clone does not have it."""
    tag = (git("describe", "--tags", "--abbrev=0") or b"").decode().strip()
    commit = os.environ.get(FROM) or tag or FIRST
    packed = git("archive", commit)
    if packed is None:
        pytest.skip(f"{commit} is not in this clone: fetch the history, or name another commit by {FROM}")
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    (folder / "static" / "vendor").symlink_to(REPOSITORY / "static" / "vendor")
    return folder


def last_migrations(tree: Path) -> dict[str, str]:
    """Return the name of the last migration of each app, by the app."""
    files = sorted(tree.glob("*/migrations/0*.py"))
    return {file.parent.parent.name: file.stem for file in files}


# --- parts


class Newer:
    """Parts of this version on the state of a stack of another, outside of its supervisor."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._state = State(stack.folder)
        self._port = free_port()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        settings = self._state.read_run_file()
        self._programs = {each.name: each for each in programs(self._state, None, settings, self._port)}
        self.address = f"http://127.0.0.1:{self._port}"

    def start(self, part: str) -> None:
        program = self._programs[part]
        with (self._stack.folder / "logs" / f"new-{part}.log").open("ab") as log:
            self._running[part] = subprocess.Popen(
                program.command,
                cwd=REPOSITORY,
                env={**self._stack.environ, "PYTHONUNBUFFERED": "1", **program.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self, part: str) -> None:
        process = self._running.pop(part)
        process.terminate()
        try:
            process.wait(30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for part in list(self._running):
            self.stop(part)

    def is_heard(self, part: str) -> bool:
        leader = self._running[part]
        assert leader.poll() is None, f"the new {part} ended with {leader.returncode}"
        return any(session_of(row["pid"]) == leader.pid for row in self._stack.rows(HEARD, part))


def session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def old_is_heard(stack: Stack, part: str) -> bool:
    theirs = {process.pid for process in leftovers.marked(stack.folder, part)}
    return any(row["pid"] in theirs for row in stack.rows(HEARD, part))


def serves(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/readyz/web", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


BACKGROUND = ("worker", "watcher", "collector")
"""Parts of which two may run at once. The SSH jump of a trial has one port."""


def roll_forward(stack: Stack, newer: Newer, lead_to: Callable[[str], None]) -> None:
    for part in BACKGROUND:
        newer.start(part)
        stack.supervise("stop", part)
        until(f"the new {part} is heard", lambda: newer.is_heard(part), 60)  # noqa: B023
    stack.supervise("stop", "ssh-jump")
    newer.start("ssh-jump")
    newer.start("web")
    until("the new web process is ready", lambda: serves(newer.address), 60)
    lead_to(newer.address)
    time.sleep(LEFT_SECONDS)
    stack.supervise("stop", "web")


def roll_back(stack: Stack, newer: Newer, lead_to: Callable[[str], None]) -> None:
    old = f"http://127.0.0.1:{stack.port}"
    stack.supervise("start", "web")
    until("the old web process is ready", lambda: serves(old), 60)
    lead_to(old)
    time.sleep(LEFT_SECONDS)
    newer.stop("web")
    newer.stop("ssh-jump")
    stack.supervise("start", "ssh-jump")
    for part in BACKGROUND:
        stack.supervise("start", part)
        newer.stop(part)
        until(f"the old {part} is heard", lambda: old_is_heard(stack, part), 60)  # noqa: B023


# --- people


@dataclass
class Traffic:
    """Requests at a steady rate. None may fail; those that did are kept."""

    reader: Client
    launcher: Client
    paths: tuple[str, ...]
    answers: int = 0
    failed: list[str] = field(default_factory=list)
    launched: list[str] = field(default_factory=list)

    def ask(self, api: Client, method: str, path: str, body: Any = None) -> Any:
        try:
            status, answer = api(method, path, body)
        except (OSError, HTTPException) as error:
            status, answer = 0, error
        if status >= 300 or status == 0:
            self.failed.append(f"{time.strftime('%X')} {method} {path} at {api.address}: {status} {answer}")
        self.answers += 1
        return answer

    def read(self, number: int) -> None:
        self.ask(self.reader, "GET", self.paths[number % len(self.paths)])

    def launch(self, number: int) -> None:
        body = {"tenant": "demo", "name": f"during-{number}", "image": "jupyter", "flavor": "cpu-small"}
        self.launched.append(str(self.ask(self.launcher, "POST", "workspaces/", body).get("id")))


@contextmanager
def steady(*does: tuple[Callable[[int], None], float]) -> Iterator[None]:
    """Call each function with a running number every so many seconds, in a thread of its own."""
    over = threading.Event()

    def repeat(act: Callable[[int], None], pause_seconds: float) -> None:
        number = 0
        while not over.wait(pause_seconds):
            act(number)
            number += 1

    threads = [threading.Thread(target=repeat, args=each) for each in does]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(90)
