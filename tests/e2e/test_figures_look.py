"""Pages of figures in a browser: charts that move, GPUs coloured by use, for everybody and in every look."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from clusters.models import Cluster, Node
from monitoring.figures.store import Sample, TrackIdentity, put
from monitoring.models import AgentState
from tests.cast import Cast
from tests.e2e import looks
from tests.e2e.browsing import opened, signed_in
from tests.monitoring.measured import make_gpus, measure, put_on
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]


def furnish(cast: Cast) -> Workspace:
    workspace = make_workspace(cast, cast.bob, name="train")
    make_gpus(cast, broken=3)
    put_on(workspace, 1)
    measure(workspace, gpus=2, every_seconds=60)
    return workspace


def wrong_with(page: Page) -> list[str]:
    wrong = looks.structure(page) + looks.faults(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.set_viewport_size(looks.SMALLEST)
    wrong += looks.overflow(page) + looks.faults(page, ["color-contrast"])
    return wrong


def test_a_chart_and_its_table_follow_what_is_measured(browser: Browser, address: str, cast: Cast) -> None:
    workspace = furnish(cast)
    with signed_in(browser, address, cast.bob.user, reduced_motion="reduce") as context:
        page = context.new_page()
        said = looks.complaints(page)
        page.goto(f"/workspaces/{workspace.pk}/metrics/?window=15m")
        use = page.locator('[data-panel="gpu_utilization"]')
        use.locator("canvas").wait_for()
        simulated = page.get_by_text("These figures are simulated.")
        expect(simulated).to_be_hidden()
        AgentState.objects.update(is_simulated=True)
        assert workspace.run is not None
        gpu = TrackIdentity(cast.cluster.pk, "gpu-1", "GPU-gpu-1-0", "GPU 0", frozenset({workspace.run}))
        put([Sample(gpu, time.time() + 5, 99.0)])  # a separate step of the chart
        expect(use.locator("[data-latest]").first).to_have_text("99%")
        expect(simulated).to_be_visible()
        use.locator("[data-plot]").focus()
        page.keyboard.press("ArrowLeft")
        expect(use.locator("[data-moment]")).to_contain_text("GPU 0 99%")
        assert said == []
        assert wrong_with(page) == []


def test_a_gpus_use_and_why_it_is_out_are_read_on_the_map(browser: Browser, address: str, cast: Cast) -> None:
    furnish(cast)
    with opened(browser, address, cast.bob.user, "/gpus/", reduced_motion="reduce") as page:
        page.locator("#node-a100-node-1 > summary").press("Enter")
        expect(page.locator("#node-a100-node-1")).to_contain_text("GPU 1: 24% busy, 18.6 of 80 GiB")
        expect(page.locator("#node-a100-node-1")).to_contain_text("GPU 3 is out of use.")
        assert wrong_with(page) == []


def test_the_first_page_draws_how_busy_the_gpus_are_and_keeps_it(
    browser: Browser, address: str, cast: Cast
) -> None:
    workspace = furnish(cast)
    with opened(browser, address, cast.bob.user, "/", reduced_motion="reduce") as page:
        line = page.locator(f"#spark-{workspace.pk}")
        expect(line).to_contain_text("over the last hour")
        page.evaluate("document.body.dispatchEvent(new Event('refresh'))")
        page.wait_for_load_state("networkidle")
        expect(line).to_contain_text("over the last hour")
        assert wrong_with(page) == []


HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.mark.parametrize(("path", "fetched"), [("/gpus/", "/gpus/"), ("/", "/workspaces/sparklines/")])
def test_a_page_that_nobody_sees_fetches_nothing_and_all_of_it_once_it_is_shown(
    browser: Browser, address: str, path: str, fetched: str, cast: Cast
) -> None:
    furnish(cast)
    with signed_in(browser, address, cast.bob.user) as context:
        page = context.new_page()
        page.clock.install()
        page.goto(path, wait_until="networkidle")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(urlsplit(request.url).path))
        page.evaluate(HIDE, True)
        page.clock.fast_forward(31_000)
        page.evaluate("document.body.dispatchEvent(new Event('refresh'))")
        page.wait_for_load_state("networkidle")
        assert asked == []
        with page.expect_request(lambda request: urlsplit(request.url).path == fetched):
            page.evaluate(HIDE, False)


def test_an_admin_reads_of_a_node_what_its_gpus_did(browser: Browser, address: str, cast: Cast) -> None:
    furnish(cast)
    node = Node.objects.get(name="gpu-1")
    with signed_in(browser, address, cast.admin.user, reduced_motion="reduce") as context:
        page = context.new_page()
        said = looks.complaints(page)
        page.goto(f"/admin/clusters/node/{node.pk}/change/")
        page.locator('[data-panel="gpu_temperature"] canvas').wait_for()
        expect(page.get_by_role("link", name="train")).to_be_visible()
        assert said == []
        assert looks.faults(page) == []


def test_lists_of_nodes_and_pools_fit_a_screen(browser: Browser, address: str, cast: Cast) -> None:
    furnish(cast)
    Cluster.objects.update(name="Trial cluster on this machine")
    AgentState.objects.update(is_simulated=True)
    Node.objects.update(system={"kernelVersion": "6.18.44-fc-v595"})
    cast.pool.name, cast.pool.sharing = "A100 80GB MIG", "mig"
    cast.pool.save()
    with signed_in(
        browser, address, cast.admin.user, viewport=looks.DESK, reduced_motion="reduce"
    ) as context:
        page = context.new_page()
        for path in ("/admin/clusters/node/", "/admin/quotas/pool/"):
            page.goto(path)
            wide, room = page.locator(".results").evaluate("list => [list.scrollWidth, list.clientWidth]")
            assert wide <= room, f"{path}: {wide} of {room} px"
            assert looks.faults(page) == []
