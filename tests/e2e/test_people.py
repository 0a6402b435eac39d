"""People's pages in a browser: a private key stays on the machine, times are local, the audit trail downloads."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from accounts import members
from accounts.credentials import ssh_keys
from accounts.models import Role, User
from tests.cast import Cast
from tests.e2e.browsing import opened, signed_in

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMeNzYQ3UTnSB1FYXV6w8yJYZVjrJ5Ps2JZz4zQmiTDr me@laptop"
PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----"


def test_a_private_key_never_leaves_the_browser_and_a_public_one_is_added(
    browser: Browser, address: str, cast: Cast
) -> None:
    with signed_in(browser, address, cast.bob.user) as context:
        page = context.new_page()
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.post_data or ""))
        page.goto("/profile/#ssh-keys")
        field = page.get_by_role("textbox", name="Public key")
        page.locator("#ssh-keys").get_by_label("Name", exact=True).fill("laptop")
        field.fill(PRIVATE_KEY)
        page.get_by_role("button", name="Add key").click()
        assert "must never leave your machine" in str(field.evaluate("field => field.validationMessage"))
        field.fill(KEY)
        page.get_by_role("button", name="Add key").click()
        page.get_by_text("You can now log in to your workspaces with “laptop”.").wait_for()
        assert not any("PRIVATE" in body for body in sent)


def test_times_stand_where_the_browser_is_and_then_where_the_person_says(
    browser: Browser, address: str, cast: Cast
) -> None:
    key = ssh_keys.add(cast.bob, "laptop", KEY)
    exact = f"#ssh-keys time[datetime='{key.created_at.isoformat(timespec='seconds')}']"
    with signed_in(browser, address, cast.bob.user, timezone_id="Asia/Seoul") as context:
        page = context.new_page()
        page.goto("/sign-in/")  # any page tells the server where the browser is
        page.goto("/profile/")
        assert "KST" in str(page.locator(exact).get_attribute("title"))
        page.get_by_label("Time zone").select_option("Europe/Berlin")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved for every browser").wait_for()
        assert "CE" in str(page.locator(exact).get_attribute("title"))
    assert User.objects.get(username="bob").time_zone == "Europe/Berlin"


def test_the_trail_that_is_shown_can_be_taken_along_as_a_table(
    browser: Browser, address: str, cast: Cast
) -> None:
    members.set_role(cast.alice, cast.demo, "carol", Role.VIEWER)
    with opened(browser, address, cast.alice.user, "/audit/") as page:
        page.get_by_label("Search").fill("carol")
        page.get_by_role("button", name="Show").click()
        page.get_by_text("alice added carol as viewer.").wait_for()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download as CSV").click()
        lines = download.value.path().read_text().splitlines()
    assert download.value.suggested_filename == "audit.csv"
    assert len(lines) == 2
    assert ",alice,done,member.add,demo,user," in lines[1]
