"""Launch form and workspace page in a browser: state kept across updates, and use by keyboard."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from quotas.models import Flavor
from tests.cast import Cast
from tests.e2e.browsing import opened
from tests.e2e.looks import quiet_and_readable
from tests.shared.workspace_rows import make_many, make_workspace
from workspaces.models import Desired, Phase, Workspace
from workspaces.state.live import changing
from workspaces.state.story import add_event

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]


def four_of_them(cast: Cast) -> Flavor:
    return Flavor.objects.create(
        slug="a100-4", name="Four A100", pool=cast.pool, units=4, cpu_millicores=8000, memory_mib=65_536
    )


def happens(workspace: Workspace) -> None:
    """Write an event, for which the page fetches itself again."""
    with changing(workspace.pk) as row:
        add_event(row, "renamed", old="exp-1", new="exp-1")


def is_kept_true(page: Page, workspace: Workspace) -> None:
    """Write an event and wait until the page has replaced its content."""
    page.evaluate("for (const part of document.querySelector('#now').children) part.dataset.old = 'yes'")
    happens(workspace)
    page.locator("#now > :not([data-old])").first.wait_for()


def focused(page: Page) -> str:
    """Return the focused element's id, or its text without times, which change."""
    said = "(part => { part.querySelectorAll('time').forEach(time => time.remove()); return part.textContent.trim(); })"
    return str(page.evaluate(f"document.activeElement.id || {said}(document.activeElement.cloneNode(true))"))


def test_one_click_takes_what_starts_now_and_keeps_what_was_typed(
    browser: Browser, address: str, cast: Cast
) -> None:
    four_of_them(cast)
    make_workspace(cast, cast.alice)
    with opened(browser, address, cast.bob.user, "/launch/") as page:
        page.get_by_label("Name", exact=True).fill("mine")
        page.get_by_label("Four A100").check()
        answer = page.locator("#answer")
        answer.get_by_text("You would wait, as the next in the queue").wait_for()
        expect(page.get_by_role("status").filter(has_text="You would wait")).to_have_count(1)
        answer.get_by_role("link", name="One A100").click()
        answer.get_by_text("Starts now on A100").wait_for()
        expect(page.get_by_label("Name", exact=True)).to_have_value("mine")
        expect(page.get_by_label("One A100")).to_be_focused()


def test_what_is_looked_for_is_asked_once_it_is_chosen(browser: Browser, address: str, cast: Cast) -> None:
    with opened(browser, address, cast.bob.user, "/launch/") as page:
        expect(page.get_by_label("GPU memory, at least")).to_be_hidden()
        page.get_by_label("Find a GPU").check()
        page.get_by_label("GPU memory, at least").fill("200")
        page.locator("#answer .is-bad").wait_for()
        page.get_by_label("GPU memory, at least").fill("40")
        page.locator("#answer").get_by_text("Starts now on A100").wait_for()


def test_a_double_click_launches_once(browser: Browser, address: str, cast: Cast) -> None:
    with opened(browser, address, cast.bob.user, "/launch/") as page:
        page.get_by_role("button", name="Launch", exact=True).dblclick()
        page.wait_for_url("**/workspaces/*/")
    assert Workspace.objects.count() == 1


def test_a_stop_is_asked_about_and_done_by_keyboard(browser: Browser, address: str, cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    with opened(browser, address, cast.bob.user, f"/workspaces/{workspace.pk}/") as page:
        page.get_by_role("link", name="Stop, keep files").press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("running kernels").wait_for()
        is_kept_true(page, workspace)
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(page.get_by_role("link", name="Stop, keep files")).to_be_focused()
        page.keyboard.press("Enter")
        dialog.get_by_role("button", name="Stop, keep files").press("Enter")
        page.wait_for_load_state()
        expect(page.get_by_role("link", name="Stop, keep files")).to_have_count(0)
    workspace.refresh_from_db()
    assert workspace.desired == Desired.STOPPED


def test_a_button_that_is_pressed_while_the_page_is_kept_true_is_pressed(
    browser: Browser, address: str, cast: Cast
) -> None:
    workspace = make_workspace(cast, cast.bob)
    with opened(browser, address, cast.bob.user, f"/workspaces/{workspace.pk}/") as page:
        stop = page.get_by_role("link", name="Stop, keep files")
        stop.hover()
        page.mouse.down()
        with page.expect_response(lambda answer: "hx-request" in answer.request.headers):
            happens(workspace)
        page.mouse.up()
        page.get_by_role("dialog").get_by_text("running kernels").wait_for()


def test_focus_and_what_is_unfolded_stay_while_the_page_is_kept_true(
    browser: Browser, address: str, cast: Cast
) -> None:
    workspace = make_workspace(cast, cast.bob)
    with opened(browser, address, cast.bob.user, f"/workspaces/{workspace.pk}/") as page:
        page.locator("#how-it-started summary").click()
        before = focused(page)
        is_kept_true(page, workspace)
        assert focused(page) == before
        expect(page.locator("#how-it-started .steps")).to_be_visible()


def test_a_key_typed_into_the_door_is_not_lost(browser: Browser, address: str, cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    with opened(browser, address, cast.bob.user, f"/workspaces/{workspace.pk}/") as page:
        page.get_by_label("Public key", exact=True).fill("ssh-ed25519 AAAA")
        page.locator("#how-it-started summary").focus()
        is_kept_true(page, workspace)
        expect(page.get_by_label("Public key", exact=True)).to_have_value("ssh-ed25519 AAAA")


def test_a_reader_sees_and_hears_of_a_problem_of_the_start_and_that_it_became_ready(
    browser: Browser, address: str, cast: Cast
) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STARTING, previous_image=cast.image.slug)
    with opened(browser, address, cast.bob.user, f"/workspaces/{workspace.pk}/") as page:
        page.get_by_text("Pulling the image").wait_for()
        expect(page.locator("[data-said]")).to_be_empty()
        with changing(workspace.pk) as row:
            row.message_code, row.message_data = "image_not_found", {"raw": "manifest unknown"}
            row.trouble_since, row.gives_up_at = timezone.now(), timezone.now() + timedelta(minutes=5)
        expect(page.locator("[data-said]")).to_have_text("exp-1 is starting, with a problem")
        expect(page.locator(".page-head .status")).to_have_text("starting, with a problem")
        problem = page.get_by_role("region", name="Problem")
        expect(problem).to_contain_text("this start ends in")
        quiet_and_readable(page)
        problem.get_by_role("link", name="Change image").click()
        expect(page.get_by_label("Image", exact=True)).to_be_focused()
        quiet_and_readable(page)
        page.go_back()
        with changing(workspace.pk) as row:
            row.phase, row.message_code = Phase.READY, "ready"
            row.host, row.jupyter_port, row.ssh_port = "127.0.1.5", 8888, 22
        expect(page.locator("[data-said]")).to_have_text("exp-1 is ready")
        expect(page.locator(".page-head #image-back")).to_be_visible()
        quiet_and_readable(page)


def test_a_long_list_keeps_its_place_and_what_is_selected_while_others_come(
    browser: Browser, address: str, cast: Cast
) -> None:
    make_many(cast, cast.bob, 200, Phase.READY, Phase.STOPPED)
    with opened(browser, address, cast.bob.user, "/?phase=ready") as page:
        row = page.locator("article.workspace").nth(30)
        row.scroll_into_view_if_needed()
        row.get_by_role("checkbox").check()
        row.locator(".row-menu > summary").click()
        name, before = row.get_by_role("heading").inner_text(), row.bounding_box()
        newest = make_workspace(cast, cast.bob, name="newest")
        happens(newest)
        page.get_by_role("link", name="newest", exact=True).wait_for(state="attached")
        row = page.locator("article.workspace").nth(31)
        assert row.get_by_role("heading").inner_text() == name
        after = row.bounding_box()
        assert before and after and abs(before["y"] - after["y"]) < 3
        expect(row.get_by_role("checkbox")).to_be_checked()
        row.get_by_role("link", name="Delete").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("link", name="Keep it")).to_be_focused()
        page.keyboard.press("Enter")
        expect(row.locator(".row-menu > summary")).to_be_focused()
        page.get_by_role("button", name="Stop, keep files").click()
        expect(page.get_by_role("heading", name="Stop 1 workspace?")).to_be_visible()
        page.get_by_role("button", name="Stop them, keep files").click()
        page.get_by_text("1 workspace was changed.").wait_for()
        assert page.url.endswith("/?phase=ready")
