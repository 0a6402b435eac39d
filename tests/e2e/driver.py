"""Drives a person's browser and terminal through a running Berth: pages, JupyterLab, plain ssh and sftp."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, WebSocket, expect, sync_playwright

from portal.up.plan import REPOSITORY
from tests.e2e.browsing import chromium
from tests.e2e.stack import PASSWORD

SCREENSHOTS = REPOSITORY / ".dev" / "failed"
START_SECONDS = 40
# Notes the step under way and how many are done, each time the page shows another state: what a person watches.
WATCH_STEPS = """
window.stepsSeen = [];
new MutationObserver(() => {
  const steps = [...document.querySelectorAll('ol.steps > li')];
  const current = steps.findIndex((step) => step.hasAttribute('aria-current'));
  const done = steps.filter((step) => step.classList.contains('is-done')).length;
  const last = window.stepsSeen.at(-1);
  if (current >= 0 && !(last && last[0] === current && last[1] === done)) window.stepsSeen.push([current, done]);
}).observe(document, { childList: true, subtree: true });
"""


@contextmanager
def browser(address: str, test: str) -> Iterator[BrowserContext]:
    """A browser window at the portal; on failure every open tab is photographed."""
    with sync_playwright() as playwright, chromium(playwright) as program:
        context = program.new_context(base_url=address, viewport={"width": 1280, "height": 900})
        context.set_default_timeout(20_000)
        try:
            yield context
        except BaseException:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            for number, page in enumerate(context.pages):
                page.screenshot(path=SCREENSHOTS / f"{test}-{number}.png")
            raise


class Portal:
    """Berth's own pages in one tab, as one person uses them."""

    def __init__(self, context: BrowserContext) -> None:
        self.page = context.new_page()
        self.page.add_init_script(WATCH_STEPS)
        self.events: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.page.on("websocket", self._listen)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._receive)

    def _receive(self, frame: str | bytes) -> None:
        message = json.loads(frame)
        if message["type"] == "event":
            self.events.append(message["event"])

    def sign_in(self, user: str) -> None:
        self.page.goto("/")
        self.page.get_by_label("User").fill(user)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()

    def add_key(self, public_key: str) -> None:
        self.page.get_by_role("textbox", name="Public key").fill(public_key)
        self.page.get_by_role("button", name="Add key").click()

    def launch(self, name: str, *, flavor: str, environment: dict[str, str]) -> None:
        self.page.goto("/launch/")
        self.page.get_by_label("Name", exact=True).fill(name)
        self.page.locator(f"input[name=flavor][value={flavor}]").check(force=True)
        self.page.locator("#more > summary").click()
        lines = "".join(f"{variable}={value}\n" for variable, value in environment.items())
        self.page.get_by_label("Environment", exact=True).fill(lines)
        self.page.get_by_role("button", name="Launch", exact=True).click()

    def wait_for(self, phase: str) -> None:
        expect(self.page.locator(f".page-head .status-{phase}")).to_be_visible(timeout=START_SECONDS * 1000)

    def steps_seen(self) -> list[list[int]]:
        """[index of the step under way, how many are done], in the order in which the page showed them."""
        seen: list[list[int]] = self.page.evaluate("window.stepsSeen")
        return seen

    def press(self, button: str) -> None:
        self.page.locator(f"#{button}").click()

    def stop(self) -> None:
        """Press it, and say yes to what that loses."""
        self.press("stop")
        self.page.locator("#question-dialog").get_by_role("button", name="Stop, keep files").click()

    def copyable(self, label: str) -> str:
        """The text of a copy field, folded away or not."""
        return self.page.get_by_label(label, exact=True).first.text_content() or ""

    def delete_with_files(self) -> None:
        self.press("delete")
        dialog = self.page.locator("#question-dialog")
        dialog.get_by_label("Also delete its files").check()
        dialog.get_by_role("button", name="Delete").click()


class Lab:
    """JupyterLab in a tab of its own, opened by the portal's link."""

    def __init__(self, context: BrowserContext, portal: Portal) -> None:
        with context.expect_page() as opened:
            portal.page.locator("#open-jupyter").click()
        self.page = opened.value
        expect(self._launcher("Notebook")).to_be_visible(timeout=START_SECONDS * 1000)
        self.cells = 0

    def _launcher(self, category: str) -> Any:
        return self.page.locator(f".jp-LauncherCard[data-category={category}]:visible").first

    def open_notebook(self) -> None:
        with self.page.expect_websocket(lambda socket: "/channels" in socket.url):  # what runs before is lost
            self._launcher("Notebook").click()
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text("| Idle")

    def run(self, code: str, expected: str) -> None:
        """Type a cell, run it, and wait until its output holds what is expected."""
        self.page.locator(".jp-Notebook-cell .cm-content").nth(self.cells).click()
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Shift+Enter")
        output = self.page.locator(".jp-Notebook-cell").nth(self.cells).locator(".jp-OutputArea-output").last
        expect(output).to_contain_text(expected)
        self.cells += 1

    def type_in_terminal(self, command: str) -> None:
        self.page.get_by_role("button", name="New Launcher").first.click()
        self._launcher("Other").click()
        terminal = self.page.locator(".jp-Terminal .xterm-helper-textarea")
        terminal.wait_for(state="attached")
        expect(self.page.locator(".jp-Terminal .xterm-screen")).to_be_visible()
        terminal.focus()
        self.page.keyboard.type(command + "\n")

    def close(self) -> None:
        self.page.close(run_before_unload=False)


class SSHClient:
    """The person's own ssh and sftp, by the command that the page shows and with a key of their own."""

    def __init__(self, folder: Path) -> None:
        self.key = folder / "id_ed25519"
        self.known_hosts = folder / "known_hosts"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "alice", "-f", self.key], check=True
        )
        self.command: list[str] = []

    @property
    def public_key(self) -> str:
        return self.key.with_suffix(".pub").read_text()

    def use(self, command: str) -> None:
        """`ssh …` as copied from the page, with this person's key and known hosts in place of ~/.ssh."""
        program, *arguments = shlex.split(command)
        known = f"UserKnownHostsFile={self.known_hosts}"
        own = ["-F", "none", "-i", str(self.key), "-o", known, "-o", "StrictHostKeyChecking=accept-new"]
        self.command = [program, *own, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", *arguments]

    def run(self, command: str) -> str:
        done = subprocess.run(
            [*self.command, command], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answers(self) -> bool:
        return (
            subprocess.run([*self.command, "true"], capture_output=True, timeout=30, check=False).returncode
            == 0
        )

    def sftp(self, *batch: str) -> None:
        program = ["sftp", "-q", "-b", "-", *(("-P" if word == "-p" else word) for word in self.command[1:])]
        lines = "".join(f"{line}\n" for line in batch)
        subprocess.run(program, input=lines, text=True, check=True, timeout=30, capture_output=True)

    def fingerprint(self) -> str:
        """Of the host key that was accepted at the first sign-in."""
        shown = subprocess.run(
            ["ssh-keygen", "-lf", self.known_hosts], capture_output=True, text=True, check=True
        )
        return shown.stdout.split()[1]
