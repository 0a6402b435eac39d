"""Retake docs/screenshots along a person's way through a running Berth. `make screenshots` runs it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from devcluster.nodes import DEFAULT_NODES
from portal.up.plan import REPOSITORY, TRIAL_IMAGE
from tests.e2e.driver import Portal, SSHClient, browser
from tests.e2e.stack import PASSWORD, Stack

pytestmark = [pytest.mark.screenshots, pytest.mark.timeout(300)]

FOLDER = REPOSITORY / "docs" / "screenshots"
DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
# Slow pulls, so that a start lasts long enough for a screenshot.
PULLING = f"images:\n  {TRIAL_IMAGE}: {{pull_seconds: 15}}\n"
# Simulated work of GPUs, because nothing computes in the pictures' workspaces.
AT_WORK = DEFAULT_NODES.replace("memory_mib: 81920,", "memory_mib: 81920, life: training,")
SOMETHING_TO_SEE_MS = 90_000
NOWHERE = "https://git.invalid/vision/resnet.git"
# A missing image is given up after five minutes. Troubles are dated back to skip this wait.
GIVE_UP = """
from workspaces.state.live import changing
with changing("{workspace}") as row:
    row.troubles = {{code: "2000-01-01T00:00:00+00:00" for code in row.troubles}}
"""
BROKEN_IMAGE = """
from workloads.models import Image
Image.objects.create(slug="pytorch", name="PyTorch nightly", description="PyTorch as built last night",
                     reference="registry.example/pytorch:nightly")
"""

OF_AN_OWNER = {
    "gpus": "/gpus/",
    "bookings": "/bookings/",
    "usage": "/usage/",
    "tenant": "/tenants/demo/",
    "audit": "/audit/",
    "notices": "/notices/",
    "notices-settings": "/notices/settings/",
    "profile": "/profile/",
}
CAUSES = {"causes": "/help/causes/"}
OF_AN_ADMIN = {
    "admin": "/admin/",
    "admin-quotas": "/admin/quotas/quota/",
    "admin-waiting": "/admin/quotas/claim/?state__exact=waiting",
    "admin-pools": "/admin/quotas/pool/",
    "admin-people": "/admin/accounts/user/",
    "admin-nodes": "/admin/clusters/node/",
}
NOT_THERE = {"not-there": "/workspaces/00000000-0000-4000-8000-000000000000/"}


@pytest.fixture
def berth() -> Iterator[Stack]:
    with tempfile.TemporaryDirectory(prefix="berth-screenshots-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)
        nodes = folder / "nodes.yaml"
        nodes.write_text(AT_WORK + PULLING)
        stack = Stack(folder / "state", BERTH_DEVCLUSTER_NODES=str(nodes))
        stack.start()
        try:
            yield stack
        finally:
            stack.stop()


def test_screenshots_of_the_whole_way(berth: Stack, tmp_path: Path) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.png"):
        old.unlink()
    with browser(berth.address, "screenshots") as context:
        portal = Portal(context)
        first_visit(portal, SSHClient(tmp_path).public_key)
        a_full_quota(portal)
        a_failure(portal, berth)
        portal.page.goto("/")
        expect(portal.page.locator(".status-ready")).to_have_count(2, timeout=60_000)
        expect(portal.page.locator(".status-starting")).to_have_count(0)
        take(portal.page, "home", on_phone=True)
        logs_of(portal.page, "train-resnet")
        a_booking(portal.page)
        pages(portal.page, OF_AN_OWNER | CAUSES)
        pages(portal.page, {"home": "/", "launch": "/launch/"}, languages=("zh-hans", "ko"))
        portal.page.set_extra_http_headers({})
        metrics_of(portal.page, "train-resnet")
        assert portal.faults == []
    with browser(berth.address, "screenshots-admin") as context:
        portal = Portal(context)
        portal.sign_in("admin")
        pages(portal.page, OF_AN_ADMIN)
        a_node(portal.page)
        doctor(portal.page)
        assert portal.faults == []
        pages(portal.page, NOT_THERE)


def first_visit(portal: Portal, public_key: str) -> None:
    """Go from the sign-in page to a ready workspace: two pages, and one click between them."""
    page = portal.page
    page.goto("/")
    page.get_by_label("User").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    take(page, "sign-in")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Your first workspace")).to_be_visible()
    take(page, "home-first", on_phone=True)
    page.get_by_role("button", name="Launch").click()
    expect(page.locator(".steps [aria-current]")).to_contain_text("Pulling the image")
    workspace = page.url
    take(page, "starting", on_phone=True)

    page.goto("/")
    portal.add_key(public_key)
    page.goto(workspace)
    portal.wait_for("ready")
    take(page, "ready", on_phone=True)
    page.get_by_role("link", name="Settings").click()
    take(page, "settings")


def a_full_quota(portal: Portal) -> None:
    """Launch one workspace that starts now and one that waits; the form announces both."""
    page = portal.page
    fill_in(page, "train-resnet", "a100-4")
    expect(page.locator("#answer")).to_contain_text("8 of 8 free")
    take(page, "launch", on_phone=True)
    page.locator("#more > summary").click()
    page.get_by_label("Git repository").fill(NOWHERE)
    launch(page)
    expect(page.locator(".page-head .status-starting")).to_be_visible()
    fill_in(page, "evaluate", "a100-4")
    expect(page.locator("#answer")).to_contain_text("You requested 4")
    take(page, "launch-waits")
    launch(page)
    portal.wait_for("waiting")
    expect(page.locator(".queued[data-code=borrow_limit]")).to_be_visible()
    take(page, "waiting")


def a_booking(page: Page) -> None:
    """Book GPUs within the day, so that the map shows the booking too."""
    page.goto("/bookings/")
    page.get_by_label("Pool").select_option(label="T4 shared")
    page.get_by_label("Purpose").fill("Deep learning course")
    page.get_by_label("Places").fill("8")
    with page.expect_response(lambda answer: "&gpus_each=0.25" in (answer.request.post_data or "")):
        page.get_by_label("GPUs each").fill("0.25")
    expect(page.locator("#answer")).to_contain_text("This is free")
    page.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_text("Booked: “Deep learning course”")).to_be_visible()


def a_failure(portal: Portal, berth: Stack) -> None:
    """Launch with an image of the catalogue that its registry does not have."""
    page = portal.page
    berth.manage("shell", "-c", BROKEN_IMAGE)
    fill_in(page, "try-nightly", "cpu-small")
    page.get_by_label("PyTorch nightly").check()
    launch(page)
    expect(page.locator("#now")).to_contain_text("does not exist in its registry", timeout=60_000)
    berth.manage("shell", "-c", GIVE_UP.format(workspace=urlsplit(page.url).path.split("/")[2]))
    portal.wait_for("failed")
    take(page, "failed", on_phone=True)


def logs_of(page: Page, name: str) -> None:
    """Open the logs, which say why the repository is missing."""
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("link", name="Logs").click()
    expect(page.get_by_role("log")).to_contain_text("the repository was not cloned", timeout=30_000)
    take(page, "logs")


def metrics_of(page: Page, name: str) -> None:
    page.goto("/")
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("link", name="Metrics").click()
    page.get_by_role("link", name="15 minutes").click()
    page.wait_for_timeout(SOMETHING_TO_SEE_MS)
    take(page, "metrics", on_phone=True, at=".tabs")


def a_node(page: Page) -> None:
    page.goto("/admin/clusters/node/")
    page.get_by_role("link", name="a100-1", exact=True).click()
    page.wait_for_load_state("networkidle")
    take(page, "admin-node")


def doctor(page: Page) -> None:
    page.goto("/admin/clusters/cluster/")
    settings = page.locator("#result_list tbody th a").first.get_attribute("href") or ""
    page.goto(settings.partition("change/")[0] + "doctor/")
    take(page, "admin-doctor")


def pages(page: Page, addresses: dict[str, str], languages: tuple[str, ...] = ()) -> None:
    """Take each page, in `languages` by the browser's Accept-Language, which a person's profile can overrule."""
    for name, address in addresses.items():
        for language in languages or (None,):
            if language is not None:
                page.set_extra_http_headers({"Accept-Language": language})
            page.goto(address)
            page.wait_for_load_state("networkidle")
            take(page, f"{name}-{language}" if language else name, on_phone=name == "gpus")


def fill_in(page: Page, name: str, flavor: str) -> None:
    page.goto("/launch/")
    page.get_by_label("Name", exact=True).fill(name)
    page.locator(f"input[name=flavor][value={flavor}]").check()


def launch(page: Page) -> None:
    page.get_by_role("button", name="Launch", exact=True).click()
    page.wait_for_url("**/workspaces/*/")


def take(page: Page, name: str, *, on_phone: bool = False, at: str = "body") -> None:
    """Save docs/screenshots/NAME-light.png and -dark.png; with `on_phone` also NAME-phone-light.png and -dark.png.

    `at`: the element to scroll to the top.
    """
    for size, suffix in ((DESK, ""), (PHONE, "-phone")) if on_phone else ((DESK, ""),):
        page.set_viewport_size(size)
        page.locator(at).first.evaluate("element => element.scrollIntoView()")
        for theme in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            page.screenshot(path=FOLDER / f"{name}{suffix}-{theme}.png", animations="disabled", caret="hide")
    page.set_viewport_size(DESK)
