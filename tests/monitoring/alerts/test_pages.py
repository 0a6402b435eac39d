"""Pages and API of alerts: what is shown to whom, and what the buttons do."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from monitoring.models import Alert, AlertDelivery, AlertRoute
from tests.admin_forms import confirm, preview
from tests.cast import Cast
from tests.monitoring.alerts.stage import Firings, alert, look, send
from tests.shared.clients import ask, browser, script
from tests.shared.servers.receiver import Receiver
from tests.shared.servers.smtp import MailServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(cast: Cast) -> Client:
    return browser(cast.admin)


def api(actor: Any, method: str, path: str, body: Any = None) -> Any:
    answer = ask(script(actor), method, path, body) if body is not None else ask(script(actor), method, path)
    return answer.json() if answer.content else None


def test_the_list_filters_by_state_and_pages(cast: Cast, firings: Firings) -> None:
    for number in range(3):
        firings.add(number, f"code_{number}", cluster_id=cast.cluster.pk)
    look()
    found = api(cast.admin, "GET", "alerts/?state=firing&limit=2")
    rest = api(cast.admin, "GET", "alerts/?state=firing&cursor=" + found["next"].partition("cursor=")[2])
    codes = [one["code"] for one in found["results"] + rest["results"]]
    assert sorted(codes) == ["code_0", "code_1", "code_2"] and rest["next"] is None
    assert api(cast.admin, "GET", "alerts/?state=resolved")["results"] == []
    assert found["results"][0]["names"] and found["results"][0]["cluster"] == "main"


def test_the_three_actions_over_the_api(cast: Cast, firings: Firings) -> None:
    firings.add()
    look()
    path = f"alerts/{alert().pk}/"
    assert api(cast.admin, "POST", path + "acknowledge/")["acknowledged_by"] == "admin"
    assert api(cast.admin, "POST", path + "silence/", {"minutes": 5})["state"] == "silenced"
    assert api(cast.admin, "POST", path + "resolve/")["resolved_by"] == "admin"
    assert api(cast.admin, "POST", path + "silence/", {"minutes": 5})["error"]["code"] == "alert_resolved"


def test_all_members_are_there_page_by_page(cast: Cast, firings: Firings, admin: Client) -> None:
    for number in range(230):
        firings.add(number)
    look()
    path, names = f"alerts/{alert().pk}/members/?limit=100", set()
    while path:
        answer = api(cast.admin, "GET", path)
        names |= {one["node"] for one in answer["results"]}
        path = answer["next"] and path.partition("&")[0] + "&cursor=" + answer["next"].partition("cursor=")[2]
    assert len(names) == 230
    page = admin.get(f"/alerts/{alert().pk}/?page=3")
    assert page.status_code == 200 and len(page.context["members"]) == 30


def test_an_owner_sees_their_tenants_alerts_and_no_messages_of_others(
    cast: Cast, firings: Firings, mailing: MailServer
) -> None:
    firings.add(1)
    firings.add(2, tenant_id=cast.demo.pk)
    look()
    (shown,) = api(cast.alice, "GET", "alerts/")["results"]
    assert shown["tenant"] == "demo"
    assert api(cast.alice, "GET", f"alerts/{shown['id']}/deliveries/")["results"] == []
    assert api(cast.bob, "GET", "alerts/")["results"] == []
    assert api(cast.admin, "GET", f"alerts/{shown['id']}/deliveries/")["results"][0]["to"] == "admin"


def test_the_page_acknowledges_silences_and_resolves(cast: Cast, firings: Firings, admin: Client) -> None:
    firings.add()
    look()
    page = f"/alerts/{alert().pk}/"
    for verb, body, state in (
        ("acknowledge", {}, "acknowledged"),
        ("silence", {"minutes": "30"}, "silenced"),
        ("resolve", {}, "resolved"),
    ):
        assert admin.post(page + verb + "/", body).status_code == 302
        assert alert().state == state
    admin.post(page + "acknowledge/")
    assert alert().state == "resolved" and admin.get(page).status_code == 200
    assert admin.get("/alerts/?state=resolved").context["rows"]


def test_a_route_is_made_changed_tested_and_deleted_on_its_pages(
    cast: Cast, admin: Client, hook: Receiver
) -> None:
    form = {"name": "hook", "way": "slack", "address": hook.url, "least_severity": "info", "enabled": "on"}
    assert admin.post("/alerts/routes/", form).status_code == 302
    route = AlertRoute.objects.get(name="hook")
    page = f"/alerts/routes/{route.pk}/"
    shown = admin.get(page)
    assert hook.url not in shown.content.decode() and route.host == "127.0.0.1"
    admin.post(page + "test/")
    send()
    assert "text" in hook.got[0].json and AlertDelivery.objects.get().state == "sent"
    assert admin.get(page).context["deliveries"]
    change = {"name": "other", "least_severity": "critical", "escalates_after_minutes": "15"}
    assert admin.post(page, change).status_code == 302
    changed = AlertRoute.objects.get(pk=route.pk)
    assert (changed.name, changed.is_enabled, changed.escalates_after_minutes) == ("other", False, 15)
    assert changed.address == route.address
    admin.post(page + "delete/")
    assert not AlertRoute.objects.filter(pk=route.pk).exists()


def test_a_wrong_address_is_told_beside_its_field(cast: Cast, admin: Client) -> None:
    form = {"name": "hook", "way": "slack", "address": "ftp://x", "least_severity": "info"}
    answer = admin.post("/alerts/routes/", form)
    assert answer.status_code == 422 and answer.context["form"].errors["address"]


def test_an_owners_form_offers_their_tenants_only(cast: Cast) -> None:
    fields = browser(cast.alice).get("/alerts/routes/").context["form"].fields
    assert [slug for slug, _name in fields["tenant"].choices] == ["demo"]
    assert not {"admins", "heartbeat"} & {way for way, _label in fields["way"].choices}
    assert browser(cast.bob).get("/alerts/routes/").context["form"] is None


def test_the_admin_pages_send_a_test_and_a_message_again(
    cast: Cast, firings: Firings, admin: Client, mailing: MailServer
) -> None:
    mailing.replies["RCPT"] = "450 later"
    firings.add()
    look()
    send()
    delivery = AlertDelivery.objects.get()
    for model in ("alert", "alertroute", "alertdelivery"):
        assert admin.get(f"/admin/monitoring/{model}/").status_code == 200
    for row, model in ((delivery, "alertdelivery"), (alert(), "alert"), (delivery.route, "alertroute")):
        assert admin.get(f"/admin/monitoring/{model}/{row.pk}/change/").status_code == 200
    mailing.replies.clear()
    again = "/admin/monitoring/alertdelivery/"
    confirm(admin, again, preview(admin, again, "send_again", delivery))
    tests = "/admin/monitoring/alertroute/"
    confirm(admin, tests, preview(admin, tests, "send_test", delivery.route))
    send()
    assert len(mailing.messages) == 2
    assert Alert.objects.count() == 1
