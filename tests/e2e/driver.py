"""Driver of a person's browser and terminal through a running Berth: pages, JupyterLab, plain ssh and sftp."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, WebSocket, expect, sync_playwright

from portal.up.plan import REPOSITORY
from tests.e2e.browsing import PATIENCE_MS, chromium
from tests.e2e.stack import PASSWORD

SCREENSHOTS = REPOSITORY / ".dev" / "failed"
START_SECONDS = 120
# Records the current step and the number of finished steps each time the page shows a new state.
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
    """Open a browser window at the portal; on failure, save a screenshot of every open tab."""
    with sync_playwright() as playwright, chromium(playwright) as program:
        context = program.new_context(base_url=address, viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE_MS)
        try:
            yield context
        except BaseException:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            for number, page in enumerate(page for window in program.contexts for page in window.pages):
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
        self.page.on("console", self._hear)

    def _hear(self, said: ConsoleMessage) -> None:
        """Record console errors with a URL. Those without come from axe, whose styles our CSP forbids."""
        if said.type == "error" and said.location["url"]:
            self.faults.append(said.text)

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

    def sign_on(self, name: str) -> None:
        """Sign in at the university, from Berth's sign-in page."""
        self.page.get_by_role("link", name="Sign in with Example University").click()
        self.page.get_by_label("University name").fill(name)
        self.page.get_by_role("button", name="Continue").click()

    def add_key(self, text: str) -> None:
        self.page.get_by_role("textbox", name="Public key").fill(text)
        self.page.get_by_role("button", name="Add key").click()

    def ssh_config(self) -> str:
        """Download the lines for ~/.ssh/config from the page of a ready workspace."""
        with self.page.expect_download() as started:
            self.page.locator("#ssh-config a[download]").click()
        assert started.value.suggested_filename == "berth.config"
        return Path(started.value.path()).read_text()

    def launch(self) -> str:
        """Send the launch form as it is filled in; return the workspace's id."""
        self.page.get_by_role("button", name="Launch", exact=True).click()
        self.page.wait_for_url("**/workspaces/*/")
        return urlsplit(self.page.url).path.split("/")[2]

    def api(self, path: str) -> list[Any]:
        """Return the first page of a list, as this person may see it."""
        answer = self.page.request.get(f"/api/v1/{path}")
        assert answer.ok, answer.text()
        results: list[Any] = answer.json()["results"]
        return results

    def wait_for(self, phase: str) -> None:
        expect(self.page.locator(f".page-head .status-{phase}")).to_be_visible(timeout=START_SECONDS * 1000)

    def steps_seen(self) -> list[list[int]]:
        """Pairs of [index of the current step, number of finished steps], in the order shown."""
        seen: list[list[int]] = self.page.evaluate("window.stepsSeen")
        return seen

    def press(self, button: str) -> None:
        self.page.locator(f"#{button}").click()

    def stop(self) -> None:
        """Press Stop and confirm the loss of what runs."""
        self.press("stop")
        self.page.locator("#question-dialog").get_by_role("button", name="Stop, keep files").click()

    def copyable(self, label: str) -> str:
        """Text of a copy field, even of a folded one."""
        return self.page.get_by_label(label, exact=True).first.text_content() or ""

    def delete(self) -> None:
        """Press Delete and confirm. The home stays."""
        self.press("delete")
        dialog = self.page.locator("#question-dialog")
        dialog.get_by_role("button", name="Delete").click()


class Administration:
    """Django's admin in a separate browser window, with an admin signed in."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        assert context.browser
        window = context.browser.new_context(base_url=address)
        window.set_default_timeout(PATIENCE_MS)
        self.portal = Portal(window)
        self.portal.sign_in("admin")

    def give_gpus(self, quota: str, gpus: int, borrow: int | None = None) -> None:
        """Set the GPUs of a quota, and how many it may borrow, in the admin's list of quotas."""
        page = self.portal.page
        page.goto("/")
        page.get_by_role("link", name="Admin", exact=True).click()
        page.locator("#content-main").get_by_role("link", name="Quotas", exact=True).click()
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=quota, exact=True))
        row.locator("input[name$=nominal_gpus]").fill(str(gpus))
        if borrow is not None:
            row.locator("input[name$=borrowing_limit_gpus]").fill(str(borrow))
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("1 quota was changed successfully.")).to_be_visible()


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
        with self.page.expect_websocket(lambda socket: "/channels" in socket.url):  # code run before is lost
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
    """The person's ssh and sftp, with the page's commands and a key of their own."""

    def __init__(self, folder: Path) -> None:
        self.key = folder / "id_ed25519"
        self.known_hosts = folder / "known_hosts"
        self.config, self.included = folder / "config", folder / "berth.config"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me@laptop", "-f", self.key], check=True
        )
        self.command: list[str] = []
        self.configure(new_hosts="accept-new")

    @property
    def private_key(self) -> str:
        return self.key.read_text()

    @property
    def public_key(self) -> str:
        return self.key.with_suffix(".pub").read_text()

    def configure(self, *, new_hosts: str) -> None:
        """Write what is ~/.ssh/config elsewhere. `new_hosts`: ssh's answer to a host that it has not met."""
        lines = [f"Include {self.included}", "Host *", f"IdentityFile {self.key}", "IdentitiesOnly yes"]
        known = [f"UserKnownHostsFile {self.known_hosts}", f"StrictHostKeyChecking {new_hosts}"]
        self.config.write_text("\n".join([*lines, *known, "BatchMode yes", ""]))

    def use(self, command: str) -> None:
        """Use an `ssh …` copied from the page, with this person's key and known hosts in place of ~/.ssh."""
        program, *arguments = shlex.split(command)
        self.command = [program, "-F", str(self.config), *arguments]

    def run(self, command: str) -> str:
        done = subprocess.run(
            [*self.command, command], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answers(self) -> bool:
        return (
            subprocess.run([*self.command, "true"], capture_output=True, timeout=60, check=False).returncode
            == 0
        )

    def sftp(self, *batch: str) -> None:
        program = ["sftp", "-q", "-b", "-", *(("-P" if word == "-p" else word) for word in self.command[1:])]
        lines = "".join(f"{line}\n" for line in batch)
        subprocess.run(program, input=lines, text=True, check=True, timeout=60, capture_output=True)

    def fingerprints(self) -> set[str]:
        """Fingerprints of the accepted host keys, each accepted at its first connection."""
        shown = subprocess.run(
            ["ssh-keygen", "-lf", self.known_hosts], capture_output=True, text=True, check=True
        )
        return {line.split()[1] for line in shown.stdout.splitlines()}
