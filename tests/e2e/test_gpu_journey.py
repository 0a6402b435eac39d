"""GPU monitoring as people see it: figures that move, a GPU that breaks under a workspace, and who learns why.

Pages that say that they are live are never reloaded by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.driver import Administration, Portal, browser
from tests.e2e.looks import quiet_and_readable
from tests.e2e.stack import Stack, running, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

LIVE = 60_000  # milliseconds in which a page updates itself, on a busy machine
CANVAS = "document.querySelector('[data-panel=gpu_utilization] canvas')?.toDataURL() ?? ''"
LOST = "A GPU of the node no longer answers."


@pytest.fixture(scope="module")
def berth() -> Iterator[Stack]:
    with running("gpus", BERTH_DEVCLUSTER_PODS="played") as stack:
        yield stack


def test_gpus_are_watched_and_their_users_are_notified_of_faults(berth: Stack) -> None:
    with browser(berth.address, "gpus") as context:
        context.set_default_timeout(LIVE)
        alice = Portal(context)
        alice.sign_in("alice")
        administration = Administration(context, berth.address)
        administration.portal.page.set_default_timeout(LIVE)
        workspace = launches(alice)
        sees_figures_move(alice)
        node, uuid = gpu_of(berth, workspace)
        a_gpu_breaks_under_her(berth, alice, workspace, uuid)
        the_admin_reads_who_is_on_it(administration.portal.page, node, "train")
        a_test_of_a_node_passes_and_fails(berth, administration.portal.page)
        the_doctor_finds_what_is_missing(berth, administration.portal.page)
        assert [alice.faults, administration.portal.faults] == [[], []]


def launches(alice: Portal) -> str:
    alice.page.goto("/launch/?fresh&name=train")
    alice.page.get_by_role("radio", name=re.compile("^1 × A100 80GB")).check()
    workspace = alice.launch()
    alice.wait_for("ready")
    return workspace


def sees_figures_move(alice: Portal) -> None:
    page = alice.page
    page.get_by_role("link", name="Metrics").click()
    page.get_by_role("link", name="15 minutes").click()
    for name in ("gpu_utilization", "gpu_memory_used", "cpu", "memory_used"):
        panel = page.locator(f"[data-panel={name}]")
        expect(panel.locator("[data-latest]").first).to_have_text(re.compile(r"\d"), timeout=LIVE)
        expect(panel.locator("canvas")).to_be_visible()
    page.evaluate("window.wasNotLoadedAgain = true")
    drawn = page.evaluate(CANVAS)
    until("the chart moves", lambda: page.evaluate(CANVAS) not in ("", drawn), 60)
    assert page.evaluate("window.wasNotLoadedAgain")
    page.reload()
    expect(page.get_by_text("These figures are simulated.", exact=True)).to_be_visible()
    quiet_and_readable(page)


def gpu_of(berth: Stack, workspace: str) -> tuple[str, str]:
    held = f"%{workspace}%"
    [row] = berth.rows("SELECT node, uuid FROM clusters_gpu WHERE held_by::text LIKE %s", held)
    return row["node"], row["uuid"]


def a_gpu_breaks_under_her(berth: Stack, alice: Portal, workspace: str, uuid: str) -> None:
    """Break her GPU: her page reports it by itself, and the map no longer offers it."""
    page = alice.page
    page.goto("/gpus/")
    pool = page.get_by_role("region", name="A100 80GB", exact=True)
    expect(pool.locator("dl")).to_contain_text(re.compile(r"free\s*7"))
    expect(pool.locator(".gpu-cell.is-broken")).to_have_count(0)
    hers = page.context.new_page()
    hers.goto(f"/workspaces/{workspace}/")
    hers.evaluate("window.wasNotLoadedAgain = true")
    berth.fault(gpu=uuid, xid=79)
    expect(hers.locator("main")).to_contain_text(LOST, timeout=LIVE)
    assert hers.evaluate("window.wasNotLoadedAgain")
    quiet_and_readable(hers)
    hers.close()
    expect(pool.locator(".gpu-cell.is-broken")).to_have_count(1, timeout=LIVE)
    quiet_and_readable(page)
    page.goto("/notices/")
    expect(page.locator("main")).to_contain_text("train")
    expect(page.locator("main")).to_contain_text(LOST)


def the_admin_reads_who_is_on_it(page: Page, node: str, name: str) -> None:
    page.goto("/admin/clusters/node/")
    page.get_by_role("link", name=node, exact=True).click()
    expect(page.get_by_role("heading", name="Troubles")).to_be_visible()
    expect(page.locator("#content")).to_contain_text(f"New workspaces do not get it. {LOST}")
    expect(page.get_by_role("link", name=name)).to_be_visible()
    quiet_and_readable(page)


def a_test_of_a_node_passes_and_fails(berth: Stack, page: Page) -> None:
    begin_test(page, "a100-mig")
    expect(newest_test(page)).to_contain_text("passed")
    [row] = berth.rows("SELECT id FROM clusters_cluster")
    page.goto(f"/admin/clusters/cluster/{row['id']}/change/")
    field = page.locator("[name=validation_image]")
    field.fill(field.input_value().replace(":passes", ":fails"))
    page.get_by_role("button", name="Save", exact=True).click()
    begin_test(page, "a100-mig")
    expect(newest_test(page)).to_contain_text("failed")
    newest_test(page).get_by_role("link").first.click()
    expect(page.locator("pre")).to_contain_text("vectorAdd")
    quiet_and_readable(page)


def begin_test(page: Page, node: str) -> None:
    page.goto("/admin/clusters/node/")
    page.get_by_role("link", name=node, exact=True).click()
    page.get_by_role("link", name="Test its GPUs").click()
    page.get_by_role("button", name="Begin the tests").click()
    expect(page.get_by_text("1 test has begun.")).to_be_visible()
    until("it ended", lambda: has_ended(page), 60, 1)


def has_ended(page: Page) -> bool:
    page.reload()
    return "under way" not in newest_test(page).inner_text()


def newest_test(page: Page) -> Locator:
    return page.locator("#result_list tbody tr").first


def the_doctor_finds_what_is_missing(berth: Stack, page: Page) -> None:
    fault = berth.fault(metrics="absent")
    [row] = berth.rows("SELECT id FROM clusters_cluster")
    page.goto(f"/admin/clusters/cluster/{row['id']}/doctor/")
    missing = page.locator(".finding").filter(has_text="The cluster does not report what pods use")
    expect(missing).to_contain_text("Install the Kubernetes Metrics Server.")
    quiet_and_readable(page)
    berth.end_faults(fault)
    page.get_by_role("link", name="Check again").click()
    expect(page.get_by_text("The cluster reports the CPU and memory usage of pods.")).to_be_visible()
    expect(missing).to_have_count(0)
