"""Behaviour of pages in a browser: they follow changes, reconnect after an outage, and work without scripts."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, WebSocketRoute, expect

from accounts.models import Membership
from quotas.bookings import changes as bookings
from quotas.bookings.rules import Wish
from quotas.live import on_change
from quotas.models import TenantLimit
from tests.cast import Cast
from tests.e2e.browsing import opened, signed_in
from tests.shared.workspace_rows import make_workspace
from workloads.models import Image
from workspaces.models import Phase, Template, Workspace
from workspaces.state.live import changing

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]


def test_another_tenant_shows_its_own_share(browser: Browser, address: str, cast: Cast) -> None:
    cast.bob.user.memberships.create(tenant=cast.second, role="member")
    cast.pool.quotas.filter(tenant=cast.second).update(nominal_gpus=2)
    with opened(browser, address, cast.bob.user, "/launch/") as page:
        page.get_by_text("your team uses 0 of 4").wait_for()
        page.get_by_label("Tenant", exact=True).select_option("second")
        page.get_by_text("your team uses 0 of 2").wait_for()


def test_the_launch_form_leads_on_a_phone(browser: Browser, address: str, cast: Cast) -> None:
    """Verdict and button stay in reach, a taken name is said at once, faults have the focus, images are searched."""
    make_workspace(cast, cast.bob, name="taken")
    TenantLimit.objects.create(tenant=cast.demo, image_prefixes="registry.example/team/")
    for number in range(5):
        Image.objects.create(
            slug=f"i{number}", name=f"Image {number}", reference="x/y:1", cuda_version=f"12.{number}"
        )
    templates = {"tenant": cast.demo, "name": "Course week 3", "body": {"image": "i3", "flavor": "a100-1"}}
    Template.objects.create(**templates)
    with opened(browser, address, cast.bob.user, "/launch/", viewport={"width": 375, "height": 667}) as page:
        launch = page.get_by_role("button", name="Launch", exact=True)
        said = page.locator("[data-said]")
        expect(said).to_have_text("Starts now on A100 (7 of 8 free)")
        for element in (launch, said):
            expect(element).to_be_in_viewport(ratio=1)
        page.get_by_label("Search images").fill("cuda 12.3")
        expect(page.get_by_text("Image 3")).to_be_visible()
        expect(page.get_by_text("Image 2")).to_be_hidden()
        name = page.get_by_label("Name", exact=True)
        name.fill("taken")
        expect(page.locator("#id_name_error")).to_contain_text("Already taken.")
        expect(name).to_have_attribute("aria-invalid", "true")
        launch.click()
        expect(page.get_by_text("Launch failed")).to_be_visible()
        expect(name).to_be_focused()
        reference = page.locator("#id_image_reference")
        expect(reference).to_be_hidden()
        page.get_by_label("Search images").fill("")
        page.get_by_role("radio", name="Own image").check()
        reference.fill("quay.example/a")
        name.fill("mine")
        launch.click()
        expect(page.locator("#id_image_reference_error")).to_contain_text("registry.example/team/")
        expect(reference).to_be_focused()
        page.get_by_role("link", name="Course week 3").click()
        expect(page.locator("input[name=image]:checked")).to_have_value("i3")
        name.fill("mine")
        name.press("Enter")
        page.wait_for_url("**/workspaces/*/")


def test_a_key_being_typed_survives_what_happens_meanwhile(
    browser: Browser, address: str, cast: Cast
) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STARTING)
    with opened(browser, address, cast.bob.user, "/") as page:
        page.get_by_label("Public key", exact=True).fill("ssh-ed25519 AAAA")
        become_ready(workspace)
        page.get_by_role("link", name="Open JupyterLab").wait_for()
        assert page.get_by_label("Public key", exact=True).input_value() == "ssh-ed25519 AAAA"


def become_ready(workspace: Workspace) -> None:
    with changing(workspace.pk) as row:
        row.phase = Phase.READY
        row.host, row.jupyter_port, row.ssh_port = "127.0.1.5", 8888, 22


def test_the_page_says_that_it_reconnects_and_catches_up(browser: Browser, address: str, cast: Cast) -> None:
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
        # Only this page's socket: the page does not show the loss of the notices' socket.
        page.route_web_socket("**/ws/workspaces/**", connect)
        page.goto(f"/workspaces/{workspace.pk}/")
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


def test_everything_works_without_scripts(browser: Browser, address: str, cast: Cast) -> None:
    with opened(browser, address, cast.bob.user, "/", java_script_enabled=False) as page:
        page.get_by_role("button", name="Launch").click()
        page.get_by_role("link", name="Delete").click()
        page.get_by_role("button", name="Delete").click()
        page.get_by_text("is being deleted").wait_for()


def test_a_theme_is_seen_at_once_and_kept_with_the_person(browser: Browser, address: str, cast: Cast) -> None:
    with opened(browser, address, cast.bob.user, "/", color_scheme="light") as page:
        page.locator("#person-menu > summary").click()
        with page.expect_response("**/theme/"):
            page.get_by_role("button", name="Dark").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    with opened(
        browser, address, cast.bob.user, "/gpus/", color_scheme="light", java_script_enabled=False
    ) as page:
        assert page.locator("html").get_attribute("data-theme") == "dark"
        page.locator("#person-menu > summary").click()
        page.get_by_role("button", name="System").click()
        assert page.url.endswith("/gpus/")
        assert page.locator("html").get_attribute("data-theme") is None


def test_menus_open_and_close_by_keyboard(browser: Browser, address: str, cast: Cast) -> None:
    with opened(browser, address, cast.bob.user, "/gpus/") as page:
        page.locator("#person-menu > summary").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
        expect(page.locator("#person-menu > summary")).to_be_focused()


def test_keys_lead_to_pages_but_not_while_typing_or_switched_off(
    browser: Browser, address: str, cast: Cast
) -> None:
    with opened(browser, address, cast.bob.user, "/") as page:
        page.keyboard.type("gl")
        page.wait_for_url("**/launch/")
        page.get_by_label("Name", exact=True).press_sequentially("gg")
        assert page.url.endswith("/launch/")
        page.get_by_role("heading", level=1).click()
        page.keyboard.press("?")
        page.get_by_label("Use these shortcuts in this browser").uncheck()
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.locator("#shortcuts")).to_be_hidden()


def test_the_tenant_switch_stays_on_the_page(browser: Browser, address: str, cast: Cast) -> None:
    Membership.objects.create(tenant=cast.second, user=cast.bob.user, role="viewer")
    with opened(browser, address, cast.bob.user, "/gpus/") as page:
        page.locator("#tenant-menu > summary").click()
        page.get_by_role("button", name="Second").click()
        expect(page.locator("#tenant-menu > summary")).to_contain_text("Second")
        assert page.url.endswith("/gpus/")


def test_the_map_of_gpus_follows_what_happens_and_keeps_what_is_unfolded(
    browser: Browser, address: str, cast: Cast
) -> None:
    with opened(browser, address, cast.bob.user, "/gpus/") as page:
        page.locator("#node-a100-node-1 > summary").click()
        expect(page.locator("#node-a100-node-1 li")).to_have_text("4 GPUs: free")
        make_workspace(cast, cast.alice, Phase.STARTING, name="train")
        on_change()
        expect(page.locator("#node-a100-node-1 li").first).to_contain_text("1 GPU: alice of Demo, train")


def test_an_owner_is_told_what_is_in_the_way_takes_the_next_free_slot_and_cancels(
    browser: Browser, address: str, cast: Cast
) -> None:
    tomorrow = timezone.now().replace(second=0, microsecond=0) + timedelta(days=1)
    lecture = Wish(
        title="Lecture",
        starts_at=tomorrow,
        ends_at=tomorrow + timedelta(hours=2),
        places=4,
        gpus_each=Fraction(1),
    )
    bookings.book(cast.alice, cast.demo, cast.pool, lecture)
    with opened(browser, address, cast.alice.user, "/bookings/") as page:
        page.get_by_label("Purpose").fill("Exam")
        page.get_by_label("From", exact=True).fill(f"{tomorrow:%Y-%m-%dT%H:%M}")
        page.get_by_label("To", exact=True).fill(f"{tomorrow + timedelta(hours=1):%Y-%m-%dT%H:%M}")
        page.locator("#answer").get_by_role("link", name="Take").click()
        page.locator("#answer").get_by_text("This is free").wait_for()
        page.get_by_role("button", name="Book", exact=True).click()
        page.get_by_text("Booked: “Exam”").wait_for()
        page.get_by_role("link", name="Exam").click()
        page.get_by_role("link", name="Cancel the booking").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel the booking").click()
        page.get_by_text("Cancelled: “Exam”").wait_for()
        expect(page.get_by_role("link", name="Exam")).to_have_count(0)
