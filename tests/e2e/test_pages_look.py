"""Every page in a browser: no error in its console, nothing wider than a phone, no serious accessibility fault."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, WebSocketRoute, sync_playwright
from pytest_django import DjangoDbBlocker

from accounts import ssh_keys
from tests.cast import Cast, make_cast
from tests.e2e.browsing import chromium, signed_in, web_process
from tests.workspaces.made import make_workspace
from workspaces.live import changing
from workspaces.models import Phase, Workspace
from workspaces.story import tell

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMeNzYQ3UTnSB1FYXV6w8yJYZVjrJ5Ps2JZz4zQmiTDr me@laptop"
DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
SMALLEST: ViewportSize = {"width": 360, "height": 740}
TOO_BAD = ("serious", "critical")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # playwright's loop runs in this thread
    with sync_playwright() as playwright, chromium(playwright) as browser:
        yield browser
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="module")
def address(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with django_db_blocker.unblock(), web_process(tmp_path_factory.mktemp("static")) as address:
        yield address


def all_pages(cast: Cast) -> list[str]:
    """Addresses for bob, who has a workspace in every phase."""
    ssh_keys.add(cast.bob, "laptop", KEY)
    made = {phase: make_workspace(cast, cast.bob, phase, name=f"is-{phase}") for phase in Phase}
    ready = f"/workspaces/{made[Phase.READY].pk}/"
    return [
        "/",
        "/?show=everyone",
        "/launch/",
        *(f"/workspaces/{workspace.pk}/" for workspace in made.values()),
        f"{ready}logs/",
        f"{ready}settings/",
        f"{ready}delete/",
        "/profile/",
        "/api/docs/",
        "/nowhere/",
    ]


def troubles_of(page: Page) -> list[str]:
    """What the browser complains about from now on; a missing page itself is not a complaint."""
    troubles: list[str] = []
    page.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    return troubles


def visit(page: Page, path: str) -> None:
    page.goto(path, wait_until="load")


def faults(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {node['html'][:120]}"
        for fault in found
        if fault["impact"] in TOO_BAD
        for node in fault["nodes"]
    ]


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize(("theme", "viewport"), [("light", DESK), ("dark", PHONE)])
def test_every_page_is_quiet_accessible_and_fits_a_small_phone(
    browser: Browser, address: str, theme: str, viewport: ViewportSize
) -> None:
    cast = make_cast()
    paths = all_pages(cast)
    with signed_in(browser, address, cast.bob.user, color_scheme=theme) as context:
        for path in paths:
            page = context.new_page()
            page.set_viewport_size(viewport)
            troubles = troubles_of(page)
            visit(page, path)
            assert faults(page) == [], path
            page.set_viewport_size(SMALLEST)
            assert overflow(page) <= 0, path
            assert [text for text in troubles if "404" not in text or path != "/nowhere/"] == [], path
            page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_first_pages_are_quiet_and_accessible(browser: Browser, address: str, theme: str) -> None:
    cast = make_cast()
    for user, path in ((None, "/sign-in/"), (cast.alice.user, "/"), (cast.victor.user, "/launch/")):
        with signed_in(browser, address, user, color_scheme=theme, viewport=SMALLEST) as context:
            page = context.new_page()
            troubles = troubles_of(page)
            visit(page, path)
            assert faults(page) == [], path
            assert troubles == [], path
            assert overflow(page) <= 0, path


def test_the_launch_form_answers_while_choosing(browser: Browser, address: str) -> None:
    cast = make_cast()
    cast.pool.flavors.create(slug="a100-4", name="Four A100", units=4, cpu_millicores=8000, memory_mib=65_536)
    make_workspace(cast, cast.alice)
    with signed_in(browser, address, cast.bob.user) as context:
        page = context.new_page()
        visit(page, "/launch/")
        page.get_by_label("Four A100").check()
        page.locator("#answer").get_by_text("You would wait, as the next in the queue").wait_for()
        page.get_by_role("link", name="One A100").click()
        page.locator("#answer").get_by_text("Starts now on A100").wait_for()


def test_another_tenant_shows_its_own_share(browser: Browser, address: str) -> None:
    cast = make_cast()
    cast.bob.user.memberships.create(tenant=cast.second, role="member")
    cast.pool.quotas.filter(tenant=cast.second).update(nominal_gpus=2)
    with signed_in(browser, address, cast.bob.user) as context:
        page = context.new_page()
        visit(page, "/launch/")
        page.get_by_text("your tenant uses 0 of its 4").wait_for()
        page.get_by_label("Tenant").select_option("second")
        page.get_by_text("your tenant uses 0 of its 2").wait_for()


def test_a_key_being_typed_survives_what_happens_meanwhile(browser: Browser, address: str) -> None:
    cast = make_cast()
    workspace = make_workspace(cast, cast.bob, Phase.STARTING)
    with signed_in(browser, address, cast.bob.user) as context:
        page = context.new_page()
        visit(page, "/")
        page.get_by_label("Public key", exact=True).fill("ssh-ed25519 AAAA")
        become_ready(workspace)
        page.get_by_role("link", name="Open JupyterLab").wait_for()
        assert page.get_by_label("Public key", exact=True).input_value() == "ssh-ed25519 AAAA"


def test_a_workspace_page_follows_its_workspace(browser: Browser, address: str) -> None:
    cast = make_cast()
    workspace = make_workspace(cast, cast.bob, Phase.STARTING)
    with signed_in(browser, address, cast.bob.user) as context:
        page = context.new_page()
        visit(page, f"/workspaces/{workspace.pk}/")
        page.get_by_text("Pulling the image").wait_for()
        become_ready(workspace)
        page.get_by_role("link", name="Open JupyterLab").wait_for()
        with changing(workspace.pk) as row:
            tell(row, "renamed", old="exp-1", new="exp-2")
        page.get_by_text("Renamed from “exp-1” to “exp-2”.").wait_for()


def become_ready(workspace: Workspace) -> None:
    with changing(workspace.pk) as row:
        row.phase = Phase.READY
        row.host, row.jupyter_port, row.ssh_port = "127.0.1.5", 8888, 22


def test_the_page_says_that_it_reconnects_and_catches_up(browser: Browser, address: str) -> None:
    cast = make_cast()
    workspace = make_workspace(cast, cast.bob, Phase.STARTING)
    sockets: list[WebSocketRoute] = []
    is_away = False

    def connect(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        if is_away:
            socket.close(code=1012)
        else:
            socket.connect_to_server()

    with signed_in(browser, address, cast.bob.user) as context:
        page = context.new_page()
        page.route_web_socket("**/ws/**", connect)
        visit(page, f"/workspaces/{workspace.pk}/")
        page.get_by_text("Pulling the image").wait_for()
        while not sockets:
            page.wait_for_timeout(50)
        is_away = True
        sockets[0].close(code=1012)
        page.get_by_text("Reconnecting…").wait_for()
        become_ready(workspace)
        is_away = False
        page.get_by_role("link", name="Open JupyterLab").wait_for()
        page.get_by_text("Reconnecting…").wait_for(state="hidden")


def test_everything_works_without_scripts(browser: Browser, address: str) -> None:
    cast = make_cast()
    with signed_in(browser, address, cast.bob.user, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/")
        page.get_by_role("button", name="Launch").click()
        page.get_by_role("link", name="Delete").click()
        page.get_by_label("Also delete its files").check()
        page.get_by_role("button", name="Delete").click()
        page.get_by_text("is being deleted").wait_for()


def test_the_theme_can_be_chosen(browser: Browser, address: str) -> None:
    cast = make_cast()
    with signed_in(browser, address, cast.bob.user, color_scheme="light") as context:
        page = context.new_page()
        visit(page, "/")
        page.get_by_role("button", name="Theme").click()
        visit(page, "/launch/")
        assert page.locator("html").get_attribute("data-theme") == "dark"
