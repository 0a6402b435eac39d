"""The queue as people see it: three people of two tenants and an admin want more GPUs than there are.

Eight A100 on two nodes. Demo (alice, bob) owns four and may borrow two, Second (carol) owns four and may borrow four.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.e2e.driver import Administration, Portal, browser
from tests.e2e.looks import quiet_and_readable
from tests.e2e.stack import Stack, running

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

LIVE = 60_000  # milliseconds in which a page updates itself, on a busy machine


@pytest.fixture(scope="module")
def berth() -> Iterator[Stack]:
    with running("queue") as stack:
        yield stack


def test_people_share_gpus_that_are_not_enough_for_all(berth: Stack) -> None:
    with browser(berth.address, "queue") as context:
        people = [person(context, berth, name) for name in ("alice", "bob", "carol")]
        alice, bob, carol = people
        fill_the_pool(alice, carol)
        first, second = wait_in_order(alice, bob)
        the_same_order_everywhere(bob, [first, second])
        the_page_follows_the_queue(alice, bob)
        takes_what_starts_now(bob)

        borrows_what_carol_leaves(bob, carol)
        carol_wants_hers_back(bob, carol)
        books_for_tomorrow(alice, bob)
        the_preemption_of_bobs_run_is_cancelled(bob, carol)

        administration = Administration(context, berth.address)
        starts_when_the_quota_is_raised(bob, administration)
        assert [one.faults for one in [*people, administration.portal]] == [[]] * 4


def person(context: BrowserContext, berth: Stack, name: str) -> Portal:
    assert context.browser
    window = context.browser.new_context(
        base_url=berth.address, viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
    )
    window.set_default_timeout(LIVE)
    portal = Portal(window)
    portal.sign_in(name)
    expect(portal.page.get_by_role("heading", level=1)).to_be_visible()
    return portal


def launch(portal: Portal, name: str, size: str, minutes: str = "") -> str:
    portal.page.goto(f"/launch/?fresh&name={name}")
    choose(portal, size)
    portal.page.get_by_label("Auto-stop after").select_option(minutes)
    return portal.launch()


def choose(portal: Portal, size: str) -> None:
    portal.page.get_by_role("radio", name=re.compile(f"^{size}")).check()


def fill_the_pool(alice: Portal, carol: Portal) -> None:
    launch(alice, "train", "4 × A100 80GB", "480")
    launch(carol, "serve", "4 × A100 80GB", "480")
    for portal in (alice, carol):
        portal.wait_for("ready")
    alice.page.goto("/gpus/")
    pool = alice.page.get_by_role("region", name="A100 80GB", exact=True)
    expect(pool.locator("dl")).to_contain_text(re.compile(r"free\s*0"))


def wait_in_order(alice: Portal, bob: Portal) -> tuple[str, str]:
    """Launch two that must wait: the form says so before, and the page shows place and reason. Return their ids."""
    first = launch(alice, "sweep", "4 × A100 80GB")
    alice.wait_for("waiting")
    bob.page.goto("/launch/?fresh&name=evaluate")
    choose(bob, "1 × A100 80GB")
    expect(bob.page.locator("#answer")).to_contain_text("You would wait, as number 2 in the queue")
    second = bob.launch()
    bob.wait_for("waiting")
    said = bob.page.get_by_role("region", name="In the queue")
    expect(said).to_contain_text("Number 2 in the queue, 1 ahead of you")
    expect(said).to_contain_text("4 GPUs ahead of you")
    expect(said).to_contain_text("An earlier request of your team waits for the team's limit.")
    quiet_and_readable(bob.page)
    return first, second


def the_same_order_everywhere(bob: Portal, expected: list[str]) -> None:
    waiting = [one for one in bob.api("workspaces/?phase=waiting") if one["queue"]]
    positions = {one["id"]: one["queue"]["position"] for one in waiting}
    assert positions[expected[1]] == 2
    page = bob.page.context.new_page()
    page.goto("/gpus/")
    rows = page.get_by_role("region", name="Waiting").get_by_role("row").filter(has=page.get_by_role("link"))
    links = [rows.nth(at).get_by_role("link").get_attribute("href") or "" for at in range(rows.count())]
    assert [link.split("/")[2] for link in links] == expected
    quiet_and_readable(page)
    page.close()


def the_page_follows_the_queue(alice: Portal, bob: Portal) -> None:
    bob.page.evaluate("window.wasNotLoadedAgain = true")
    alice.press("delete")
    alice.page.locator("#question-dialog").get_by_role("button", name="Delete").click()
    said = bob.page.get_by_role("region", name="In the queue")
    expect(said).to_contain_text("Next in the queue", timeout=LIVE)
    expect(said).to_contain_text("0 GPUs are free in this pool. You requested 1.", timeout=LIVE)
    expect(said).to_contain_text(re.compile("etween|Not before|Expected|Within|No reliable"))
    assert bob.page.evaluate("window.wasNotLoadedAgain")


def takes_what_starts_now(bob: Portal) -> None:
    """Switch to a size that starts now with one click; nothing is filled in again."""
    said = bob.page.get_by_role("region", name="In the queue")
    expect(said.get_by_role("heading", name="Available now: switch size")).to_be_visible()
    said.get_by_role("listitem").filter(has_text="T4 shared").get_by_role("button").click()
    bob.wait_for("ready")
    expect(bob.page.get_by_role("heading", level=1)).to_have_text("evaluate")
    expect(bob.page.locator(".page-head .facts").first).to_contain_text("T4")


def borrows_what_carol_leaves(bob: Portal, carol: Portal) -> None:
    carol.stop()
    carol.wait_for("stopped")
    bob.page.goto("/launch/?fresh&name=borrowed")
    choose(bob, "2 × A100 80GB")
    expect(bob.page.locator("#answer")).to_contain_text("Starts now on A100 80GB")
    expect(bob.page.locator("#answer")).to_contain_text("they may be reclaimed")
    bob.launch()
    bob.wait_for("ready")


def carol_wants_hers_back(bob: Portal, carol: Portal) -> None:
    bob.page.evaluate("window.wasNotLoadedAgain = true")
    carol.press("start")
    carol.wait_for("waiting")
    expect(carol.page.locator(".queued[data-code=waits_for_reclaim]")).to_be_visible(timeout=LIVE)
    warning = bob.page.locator(".asked-back")
    expect(warning).to_contain_text(re.compile(r"It stops in\s+(10|9)\s+min\s*, at \d\d:\d\d"), timeout=LIVE)
    expect(warning).to_have_attribute("data-code", "owner_waits")
    assert bob.page.evaluate("window.wasNotLoadedAgain")
    quiet_and_readable(bob.page)
    page = bob.page.context.new_page()
    page.goto("/")
    expect(page.get_by_role("article").filter(has_text="borrowed")).to_contain_text(
        "its GPUs are being reclaimed"
    )
    page.goto("/notices/")
    expect(page.get_by_role("main")).to_contain_text("borrowed")
    page.goto("/gpus/")
    expect(page.get_by_text("being reclaimed").first).to_be_attached()
    quiet_and_readable(page)
    page.close()


def books_for_tomorrow(alice: Portal, bob: Portal) -> None:
    """Book as alice while bob has the calendar open."""
    begins = (datetime.now() + timedelta(days=1)).replace(hour=9, minute=0)
    calendar = bob.page.context.new_page()
    calendar.goto(f"/bookings/?week={begins:%Y-%m-%d}")
    pool = calendar.get_by_role("region", name="A100 80GB", exact=True)
    expect(pool).to_contain_text("nothing booked this week")

    page = alice.page
    page.goto("/bookings/")
    page.get_by_label("Pool").select_option(label="A100 80GB")
    page.get_by_label("Purpose").fill("Lecture")
    page.get_by_label("From", exact=True).fill(f"{begins:%Y-%m-%dT%H:%M}")
    page.get_by_label("To", exact=True).fill(f"{begins + timedelta(hours=2):%Y-%m-%dT%H:%M}")
    with page.expect_response(lambda answer: "&places=2&" in (answer.request.post_data or "")):
        page.get_by_label("Places").fill("2")
    expect(page.locator("#answer")).to_contain_text("This is free", timeout=LIVE)
    page.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_text("Booked: “Lecture”")).to_be_visible()

    expect(pool.get_by_role("listitem").filter(has_text="Lecture")).to_contain_text("Demo", timeout=LIVE)
    quiet_and_readable(calendar)
    calendar.close()


def the_preemption_of_bobs_run_is_cancelled(bob: Portal, carol: Portal) -> None:
    """Stop carol's waiting workspace; the preemption of bob's is cancelled."""
    carol.press("stop")
    carol.page.locator("#question-dialog").get_by_role("button", name="Stop").click()
    carol.wait_for("stopped")
    expect(bob.page.locator(".asked-back")).to_have_count(0, timeout=LIVE)
    bob.wait_for("ready")


def starts_when_the_quota_is_raised(bob: Portal, administration: Administration) -> None:
    """Find the waiting request in the admin, and raise its quota: the request starts."""
    launch(bob, "more", "1 × A100 80GB")
    bob.wait_for("waiting")
    expect(bob.page.locator(".queued[data-code=borrow_limit]")).to_contain_text(
        "(4 of its own, up to 6 with borrowing)"
    )
    bob.page.evaluate("window.wasNotLoadedAgain = true")
    page = administration.portal.page
    page.get_by_role("link", name="Admin", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("more")
    quiet_and_readable(page)
    administration.give_gpus("Demo · A100 80GB", 5)
    bob.wait_for("ready")
    assert bob.page.evaluate("window.wasNotLoadedAgain")
