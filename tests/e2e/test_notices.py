"""Notices in a browser, once for all its tabs: a notification if nobody looks, else a message in the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from accounts.credentials.sessions import sign_out_everywhere
from accounts.notices import inbox
from accounts.notices.models import Notice
from tests.cast import Cast
from tests.e2e.browsing import signed_in
from tests.e2e.stack import until
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase, Workspace
from workspaces.state.live import changing
from workspaces.state.story import add_event

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

# Replaces desktop notifications and the focus of the window, which a browser without a screen lacks. Notifications
# are kept in `window.shown`, where a test can read them.
DESKTOP = """
window.shown = [];
class Shown { constructor(title, options) { this.title = title; this.tag = options.tag; shown.push(this); } close() {} }
Shown.permission = localStorage.getItem("test_permission") || "default";
Shown.requestPermission = async () => {
  localStorage.setItem("test_permission", "granted");
  Shown.permission = "granted";
  return "granted";
};
window.Notification = Shown;
document.hasFocus = () => window.hasItsFocus ?? true;
"""


def quiet_workspace(cast: Cast, phase: Phase = Phase.READY) -> Workspace:
    workspace = make_workspace(cast, cast.bob, phase)
    Notice.objects.all().delete()
    return workspace


@pytest.fixture
def bob(browser: Browser, address: str, cast: Cast) -> Iterator[BrowserContext]:
    with signed_in(browser, address, cast.bob.user) as context:
        context.add_init_script(DESKTOP)
        yield context


def opened(context: BrowserContext, path: str) -> Page:
    page = context.new_page()
    page.goto(path, wait_until="load")
    return page


def happen(workspace: Workspace, code: str) -> None:
    with changing(workspace.pk) as row:
        add_event(row, code)


def look_away(*pages: Page) -> None:
    for page in pages:
        page.evaluate("window.hasItsFocus = false")


def shown(*pages: Page) -> list[str]:
    """Titles of desktop notifications from these tabs."""
    return [title for page in pages for title in page.evaluate("shown.map((one) => one.title)")]


def listens(page: Page) -> None:
    """Wait until a tab holds the browser's lock for the websocket."""
    held = "navigator.locks.query().then(({ held }) => held.length === 1)"
    until("a tab to listen", lambda: page.evaluate(held))


def test_a_waiting_page_offers_to_notify_and_asks_only_when_pressed(bob: BrowserContext, cast: Cast) -> None:
    workspace = quiet_workspace(cast, Phase.STARTING)
    page = opened(bob, f"/workspaces/{workspace.pk}/")
    page.locator(".notices-ask [data-permission=default]").wait_for()
    assert page.evaluate("Notification.permission") == "default"
    page.get_by_role("button", name="Notify me").click()
    page.locator(".notices-ask [data-permission=default]").wait_for(state="hidden")
    assert page.evaluate("Notification.permission") == "granted"


def test_who_says_no_is_not_asked_again(bob: BrowserContext, cast: Cast) -> None:
    workspace = quiet_workspace(cast, Phase.STARTING)
    page = opened(bob, f"/workspaces/{workspace.pk}/")
    page.get_by_role("button", name="No, thanks").click()
    page.reload()
    page.get_by_role("heading", name="exp-1").wait_for()
    assert not page.locator(".notices-ask [data-permission=default]").is_visible()


def test_where_nobody_looks_one_notification_comes_for_all_tabs(bob: BrowserContext, cast: Cast) -> None:
    workspace = quiet_workspace(cast)
    first = opened(bob, "/notices/settings/")
    first.get_by_role("button", name="Allow notifications in this browser").click()
    first.get_by_text("Notifications are on in this browser").wait_for()
    pages = [first, opened(bob, "/"), opened(bob, "/profile/")]
    listens(first)
    look_away(*pages)
    happen(workspace, "given_up")
    for page in pages:
        page.locator("[data-unread]:visible", has_text="1").wait_for()
    until("a notification", lambda: shown(*pages))
    first.wait_for_timeout(500)  # a second notification must not come
    assert shown(*pages) == ["“exp-1” failed"]


def test_when_the_tab_that_listens_closes_another_takes_over(bob: BrowserContext, cast: Cast) -> None:
    workspace = quiet_workspace(cast)
    first, second = opened(bob, "/profile/"), opened(bob, "/profile/")
    second.evaluate("Notification.requestPermission()")
    listens(first)
    first.close()
    listens(second)
    look_away(second)
    happen(workspace, "given_up")
    until("a notification", lambda: shown(second) == ["“exp-1” failed"])
    second.reload()
    second.locator("[data-unread]:visible", has_text="1").wait_for()
    listens(second)
    assert shown(second) == []  # shown before


def test_a_tab_of_who_signed_out_gives_way_to_one_of_who_is_signed_in(
    bob: BrowserContext, cast: Cast
) -> None:
    old = opened(bob, "/profile/")
    listens(old)
    sign_out_everywhere(cast.bob)
    until(
        "the lock to be free",
        lambda: not old.evaluate("navigator.locks.query().then(({ held }) => held.length)"),
    )


def test_where_somebody_looks_a_word_in_the_page_leads_there(bob: BrowserContext, cast: Cast) -> None:
    workspace = quiet_workspace(cast)
    page = opened(bob, "/profile/")
    listens(page)
    page.evaluate("Notification.requestPermission()")
    happen(workspace, "given_up")
    page.get_by_role("link", name="“exp-1” failed").click()
    page.wait_for_url(f"**/workspaces/{workspace.pk}/")
    assert not page.locator("[data-unread]").is_visible()  # read
    assert shown(page) == []


def test_several_at_once_are_one_word_with_their_number(bob: BrowserContext, cast: Cast) -> None:
    workspaces = [make_workspace(cast, cast.bob, Phase.STARTING, name=f"exp-{n}") for n in range(3)]
    page = opened(bob, "/profile/")
    listens(page)
    for workspace in workspaces:
        happen(workspace, "given_up")
    page.get_by_role("link", name="3 new notices").click()
    page.wait_for_url("**/notices/")


def test_on_its_own_page_nothing_pops_up(bob: BrowserContext, cast: Cast) -> None:
    workspace = quiet_workspace(cast, Phase.STARTING)
    page = opened(bob, f"/workspaces/{workspace.pk}/")
    listens(page)
    happen(workspace, "given_up")
    until("the notice", lambda: page.evaluate("localStorage.getItem('berth_notices_seen')"))
    until("it to be read", lambda: inbox.unread(cast.bob.user) == 0)
    assert page.get_by_role("link", name="“exp-1” failed").count() == 0
