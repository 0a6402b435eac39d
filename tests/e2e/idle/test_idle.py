"""Idle reclaim in a whole trial: a life for each source that keeps a workspace, one that ends, one kept by a click.

Their persons ask for a stop after four idle minutes, so that the warning comes two minutes before.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.driver import Portal, browser
from tests.e2e.looks import quiet_and_readable
from tests.e2e.stack import Client, Stack, running, until
from tests.workspaces.ways_in.notebook import Kernel, Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1800)]

IDLE_MINUTES = 4
PATIENCE = 600  # seconds; a look comes once a minute, and the machine may be busy
GPU, SHARED, NONE = "a100-1", "t4-quarter", "cpu-small"
LIVES = {
    "tab": GPU, "click": GPU, "gpu": GPU, "unknown": SHARED, "kernel": NONE, "terminal": NONE, "ssh": NONE, "cpu": NONE,
    "file": NONE,
}  # fmt: skip
KEPT_BY = {
    "gpu": "gpu", "unknown": "gpu_unknown", "kernel": "kernel", "terminal": "terminal", "ssh": "ssh", "cpu": "cpu",
}  # fmt: skip


@pytest.fixture(scope="module")
def berth() -> Iterator[Stack]:
    with running("idle") as stack:
        yield stack


class Lives:
    def __init__(self, berth: Stack, folder: Path) -> None:
        self.berth, self.key = berth, folder / "id"
        self.api: Client = berth.client(berth.token("alice", "read", "workspaces"))
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        public = self.key.with_suffix(".pub").read_text()
        assert self.api("POST", "ssh-keys/", {"name": "test", "public_key": public})[0] == 201
        self.ids: dict[str, str] = {}

    def launch(self, name: str, flavor: str) -> None:
        body = {"tenant": "demo", "name": name, "image": "jupyter", "flavor": flavor}
        status, made = self.api("POST", "workspaces/", body)
        assert status == 201, made
        self.ids[name] = made["id"]

    def may_be_idle(self, name: str) -> None:
        assert self.api("PATCH", f"workspaces/{self.ids[name]}/", {"idle_minutes": IDLE_MINUTES})[0] == 200

    def now(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.api("GET", f"workspaces/{self.ids[name]}/")[1]
        return found

    def is_ready(self, name: str) -> bool:
        return bool(self.now(name)["phase"] == "ready")

    def is_busy_by(self, name: str, code: str) -> bool:
        return code in self.now(name)["idle"]["busy_by"]

    def codes(self, name: str) -> list[str]:
        return [event["code"] for event in self.api.everything(f"workspaces/{self.ids[name]}/events/")]

    def server(self, name: str) -> Any:
        status, given = self.api("POST", f"workspaces/{self.ids[name]}/jupyter/")
        assert status == 201, given
        at = urlsplit(given["url"])
        address = "127.0.0.1" if str(at.hostname).endswith("localhost") else at.hostname
        return SimpleNamespace(address=address, port=at.port, host=at.netloc, token=given["token"])

    def ssh(self, name: str, command: str, *options: str) -> list[str]:
        at = self.now(name)["endpoints"]["ssh"]
        known = ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oBatchMode=yes"]
        who = f"{at['user']}@{at['host']}"
        return [
            "ssh",
            "-F",
            "none",
            *known,
            "-i",
            str(self.key),
            "-p",
            str(at["port"]),
            *options,
            who,
            command,
        ]

    def run(self, name: str, command: str) -> None:
        subprocess.run(self.ssh(name, command), check=True, timeout=60, capture_output=True)


def test_each_source_keeps_its_workspace_and_an_idle_one_is_stopped(berth: Stack, tmp_path: Path) -> None:
    lives = Lives(berth, tmp_path)
    for name, flavor in LIVES.items():
        lives.launch(name, flavor)
    for name in LIVES:
        until(f"{name} is ready", partial(lives.is_ready, name), PATIENCE, pause=1)
    with ExitStack() as stack:
        begin(lives, stack)
        for name in LIVES:  # now, as on a busy machine some wait long for the others to be ready
            lives.may_be_idle(name)
        with browser(berth.address, "idle") as context:
            keep_by_a_click(lives, Portal(context))
        until("the idle one is stopped", lambda: lives.now("tab")["phase"] == "stopped", PATIENCE, pause=5)
        event = lives.api.everything(f"workspaces/{lives.ids['tab']}/events/")
        [stop] = [one for one in event if one["code"] == "stopped_by_idleness"]
        assert stop["data"]["minutes"] >= IDLE_MINUTES
        assert stop["data"]["measured"]["kernels"] == 0 and stop["data"]["measured"]["gpu_percent"] <= 5
        assert "GPU at most" in stop["message"] and "no busy kernel" in stop["message"]
        for name, code in KEPT_BY.items():
            until(f"{name}: {code}", partial(lives.is_busy_by, name, code), PATIENCE, pause=1)
        for name in (*KEPT_BY, "file"):
            assert lives.now(name)["phase"] == "ready", name
            assert "stopped_by_idleness" not in lives.codes(name), name


def begin(lives: Lives, stack: ExitStack) -> None:
    """Begin what each life is about; it goes on until the test ends."""
    open_tab = stack.enter_context(Kernel(lives.server("tab")))
    assert open_tab.run("6 * 7") == "42"
    silent = stack.enter_context(Kernel(lives.server("kernel")))
    silent.start("import time; print('on', flush=True); time.sleep(3600)")
    silent.wait_until_printed("on")
    terminal = stack.enter_context(Terminal(lives.server("terminal")))
    terminal.run("true")
    terminal.socket.send('["stdin", "sleep 3600\\r"]')
    shell = stack.enter_context(
        subprocess.Popen(lives.ssh("ssh", "", "-tt"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    )
    stack.callback(shell.kill)
    assert shell.stdin is not None
    shell.stdin.write(b"sleep 3600\n")
    shell.stdin.flush()
    for name in ("cpu", "gpu"):
        for _ in range(2):  # on a busy machine, one has less than a quarter of a core
            lives.run(name, "nohup sh -c 'while :; do :; done' >/dev/null 2>&1 &")
    lives.run("file", 'touch -d "2 hours" "$BERTH_KEEP_ALIVE"')
    lives.berth.fault(node=lives.now("unknown")["node"], agent="silent")


def keep_by_a_click(lives: Lives, alice: Portal) -> None:
    """The page shows the warning by itself; one click takes it back."""
    alice.sign_in("alice")
    page = alice.page
    page.goto(f"/workspaces/{lives.ids['click']}/")
    page.evaluate("window.wasNotLoadedAgain = true")
    warning = page.locator("#idle")
    expect(warning).to_be_visible(timeout=PATIENCE * 1000)
    assert page.evaluate("window.wasNotLoadedAgain")
    expect(warning).to_contain_text("Files are kept")
    quiet_and_readable(page)
    page.get_by_role("button", name="Keep running").click()
    expect(page.locator("#idle")).to_have_count(0)
    assert lives.now("click")["idle"]["stops_at"] is None
    assert lives.codes("click")[-2:] == ["idle_stops_soon", "kept_alive"]
    page.goto("/notices/")
    expect(page.locator("main")).to_contain_text("is idle and stops soon")
    page.goto("/idle/")
    quiet_and_readable(page)
    assert alice.faults == []
