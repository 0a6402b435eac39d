"""An alert in a browser: it appears by itself, is acknowledged and silenced, and its messages are seen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, expect

from monitoring import enqueue
from monitoring.alerts import raising, sending
from monitoring.models import Alert, AlertDelivery, Trouble
from tests.cast import Cast
from tests.e2e.browsing import signed_in
from tests.monitoring.alerts.stage import later
from tests.shared.servers.receiver import Receiver, receiver

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


@pytest.fixture
def admin(browser: Browser, address: str, cast: Cast) -> Iterator[BrowserContext]:
    with signed_in(browser, address, cast.admin.user) as context:
        yield context


def node_is_lost(cast: Cast, node: str) -> None:
    Trouble.objects.create(
        cluster=cast.cluster, about="node", subject=node, node=node, code="node_lost", takes_out=True,
        since=timezone.now(),
    )  # fmt: skip
    raising.look()


def test_an_alert_is_acknowledged_and_silenced_and_a_webhooks_messages_are_seen(
    cast: Cast, admin: BrowserContext, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enqueue, "async_task", lambda *_, **__: None)
    page = admin.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))

    page.goto("/alerts/routes/")
    page.get_by_label("Name").fill("on call")
    page.get_by_label("Way").select_option("webhook")
    page.get_by_label("Address").fill(hook.url)
    page.locator("#add-route").click()
    expect(page.get_by_role("heading", name="on call")).to_be_visible()
    route = page.url
    assert "deep-secret" not in page.content()

    page.goto("/alerts/")
    expect(page.get_by_role("heading", name="All clear")).to_be_visible()
    node_is_lost(cast, "gpu-1")
    expect(page.get_by_role("row").filter(has_text="gpu-1")).to_be_visible()  # by itself
    node_is_lost(cast, "gpu-2")
    row = page.get_by_role("row").filter(has_text="gpu-2")
    expect(row.get_by_role("cell", name="2", exact=True)).to_be_visible()
    row.get_by_role("link").click()

    state = page.locator("[data-alert-state]")
    page.get_by_role("button", name="Acknowledge").click()
    expect(state).to_have_attribute("data-alert-state", "acknowledged")
    assert Alert.objects.get().acknowledged_by == cast.admin.user

    later(timedelta(seconds=10))
    sending.send_due()
    expect(page.locator("[data-delivery-state=sent]").first).to_be_visible()  # by itself
    (got,) = hook.got
    assert got.json["alerts"][0]["names"] == ["gpu-1", "gpu-2"]

    page.get_by_label("Silence for").select_option("120")
    page.get_by_role("button", name="Silence").click()
    expect(state).to_have_attribute("data-alert-state", "silenced")

    page.goto(route)
    expect(page.locator("[data-delivery-state=sent]")).to_be_visible()
    hook.status = 503
    page.get_by_role("button", name="Send a test").click()
    expect(page.locator("[data-delivery-state=waiting]")).to_be_visible()
    sending.send_due()
    expect(page.get_by_text("The receiver answered 503.")).to_be_visible()  # by itself
    assert AlertDelivery.objects.filter(route__way="webhook").count() == 2 and not faults
