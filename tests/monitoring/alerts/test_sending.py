"""Messages against a real mail server and a real HTTP server: what goes where, how often, and what if it fails."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

import pytest
from django.utils import timezone

from accounts.errors import Conflict, Invalid, NotAllowed, NotThere
from accounts.models import AuditEntry, Membership, User
from monitoring.alerts import actions, heartbeat, routes, sending
from monitoring.alerts.posting import is_inside
from monitoring.models import AlertDelivery, AlertRoute
from tests.cast import Cast
from tests.monitoring.alerts.stage import Firings, alert, later, look, send
from tests.shared.servers.receiver import Receiver
from tests.shared.servers.smtp import MailServer

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def route(cast: Cast, hook: Receiver, **more: Any) -> AlertRoute:
    return routes.create(
        cast.admin, {"name": "hook", "way": "webhook", "address": hook.url, "secret": "s3cret", **more}
    )


def test_an_alert_reaches_mail_and_webhook_once(
    cast: Cast, firings: Firings, mailing: MailServer, hook: Receiver
) -> None:
    route(cast, hook)
    firings.add(cluster_id=cast.cluster.pk)
    look()
    for _ in range(3):
        send()
        look()
    (got,), (mail,) = hook.got, mailing.messages
    (told,) = got.json["alerts"]
    assert (told["code"], told["occasion"], told["names"]) == ("node_lost", "firing", ["gpu-1"])
    digest = hmac.new(
        b"s3cret",
        f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body,
        hashlib.sha256,
    ).digest()
    assert got.headers["webhook-signature"] == "v1," + b64encode(digest).decode()
    text = mail.get_body(("plain",))
    assert mailing.recipients == [cast.admin.user.email] and text and "gpu-1" in text.get_content()
    assert set(AlertDelivery.objects.values_list("state", flat=True)) == {"sent"}


def test_what_is_over_is_told_to_who_was_told(cast: Cast, firings: Firings, hook: Receiver) -> None:
    route(cast, hook)
    one = firings.add()
    look()
    send()
    firings.end(one)
    look()
    send(2 * MINUTE)
    assert [got.json["alerts"][0]["occasion"] for got in hook.got] == ["firing", "resolved"]


def test_alerts_that_begin_together_go_together(
    cast: Cast, firings: Firings, mailing: MailServer, hook: Receiver
) -> None:
    route(cast, hook)
    for code in ("node_lost", "gpu_lost", "agent_silent", "network_plugin_down"):
        firings.add(1, code)
    look()
    send()
    assert len(hook.got) == len(mailing.messages) == 1 and len(hook.got[0].json["alerts"]) == 4


@pytest.mark.slow
def test_a_route_gets_no_more_than_four_messages_a_minute(
    cast: Cast, firings: Firings, hook: Receiver
) -> None:
    route(cast, hook)
    for second in range(60):
        firings.add(second, f"code_{second}")
        look()
        send(timedelta(seconds=1))
    assert len(hook.got) <= 4
    send(timedelta(seconds=25))
    assert len(hook.got) <= 5
    assert sum(len(got.json["alerts"]) for got in hook.got) == 60


def test_a_receiver_that_is_away_is_tried_again_with_the_same_id_and_given_up_after_a_day(
    cast: Cast, firings: Firings, hook: Receiver
) -> None:
    route(cast, hook)
    firings.add()
    look()
    hook.status = 503
    for pause in (10, 15, 30, 60):
        send(timedelta(seconds=pause))
    assert len(hook.got) == 4 and len({got.headers["webhook-id"] for got in hook.got}) == 1
    row = AlertDelivery.objects.get()
    assert (row.state, row.status_code, row.attempts) == ("waiting", 503, 4)
    send(timedelta(days=1))
    assert AlertDelivery.objects.get().state == "given_up"
    assert "deep-secret" not in AlertDelivery.objects.get().error


def test_what_has_to_be_tried_again_delays_nothing_else(cast: Cast, firings: Firings, hook: Receiver) -> None:
    route(cast, hook)
    firings.add()
    look()
    hook.status = 500
    send()
    hook.status = 200
    firings.add(2, "gpu_lost")
    look()
    send(timedelta(seconds=11))
    send(timedelta(seconds=11))
    told = [one["code"] for got in hook.got[1:] for one in got.json["alerts"]]
    assert sorted(told) == ["gpu_lost", "node_lost"]


def test_nothing_is_sent_while_it_is_silenced(cast: Cast, firings: Firings, hook: Receiver) -> None:
    route(cast, hook)
    firings.add()
    look()
    actions.silence(cast.admin, alert(), 30)
    send()
    assert not hook.got
    later(31 * MINUTE)
    look()
    send()
    assert len(hook.got) == 1


def test_a_disabled_route_sends_tests_only_and_what_still_fires_once_it_is_enabled(
    cast: Cast, firings: Firings, hook: Receiver
) -> None:
    made = route(cast, hook)
    over = firings.add(1, "gpu_lost")
    firings.add(2, "node_lost")
    look()
    routes.change(cast.admin, made, {"enabled": False})
    routes.test(cast.admin, made)
    send()
    assert [one["occasion"] for got in hook.got for one in got.json["alerts"]] == ["test"]
    firings.end(over)
    look()
    send(2 * MINUTE)
    assert len(hook.got) == 1
    routes.change(cast.admin, made, {"enabled": True})
    send(2 * MINUTE)
    assert [one["code"] for one in hook.got[1].json["alerts"]] == ["node_lost"] and len(hook.got) == 2


def test_who_was_told_by_a_route_that_is_disabled_now_hears_no_more(
    cast: Cast, firings: Firings, hook: Receiver
) -> None:
    made = route(cast, hook)
    one = firings.add()
    look()
    send()
    routes.change(cast.admin, made, {"enabled": False})
    firings.end(one)
    look()
    routes.change(cast.admin, made, {"enabled": True})
    send(2 * MINUTE)
    assert len(hook.got) == 1


def test_a_message_that_another_worker_sends_is_left_to_it(
    cast: Cast, firings: Firings, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    route(cast, hook)
    firings.add()
    look()
    later(timedelta(seconds=10))
    batch = sending.take()
    assert batch and sending.take() is None
    sending.deliver(batch)
    sending.deliver(batch)
    assert len(hook.got) == 1


def test_what_admins_are_told_goes_before_what_was_due_earlier_by_routes_of_tenants(
    cast: Cast, firings: Firings, hook: Receiver
) -> None:
    wanted = {"name": "slow", "way": "webhook", "address": hook.url}
    for number, tenant in enumerate((cast.demo, cast.second)):
        routes.create(cast.admin, wanted | {"tenant": tenant.slug})
        firings.add(number, tenant_id=tenant.pk)
        look()
        later(timedelta(seconds=20))
    to_admins = route(cast, hook)
    firings.add(3, "gpu_lost")
    look()
    later(timedelta(seconds=10))
    taken = []
    while batch := sending.take():
        taken.append(
            AlertDelivery.objects.filter(batch=batch).values_list("route__tenant__slug", flat=True)[0]
        )
    assert taken == [None, "demo", "second"] and to_admins.tenant is None


def test_a_test_arrives_at_once_and_is_bounded(cast: Cast, mailing: MailServer, hook: Receiver) -> None:
    to_hook = route(cast, hook)
    routes.test(cast.admin, to_hook)
    look()
    routes.test(cast.admin, AlertRoute.objects.get(way="admins"))
    send(timedelta(0))
    assert hook.got[0].json["alerts"][0]["occasion"] == "test" and len(mailing.messages) == 1
    hook.status = 500
    for _ in range(routes.MOST_WAITING_TESTS):
        routes.test(cast.admin, to_hook)
    with pytest.raises(Conflict):
        routes.test(cast.admin, to_hook)


def test_a_refused_mail_keeps_the_servers_words(cast: Cast, firings: Firings, mailing: MailServer) -> None:
    mailing.replies["RCPT"] = "550 no such person"
    firings.add()
    look()
    send()
    row = AlertDelivery.objects.get()
    assert (row.state, row.status_code) == ("waiting", 550) and "no such person" in row.error


def test_who_left_the_tenant_or_the_admins_gets_no_mail_of_alerts_any_more(
    cast: Cast, firings: Firings, mailing: MailServer
) -> None:
    wanted = {"name": "mine", "way": "mail", "address": "bob@example.org", "tenant": "demo"}
    routes.create(cast.alice, wanted)
    firings.add(tenant_id=cast.demo.pk)
    look()
    Membership.objects.filter(tenant=cast.demo, user=cast.bob.user).delete()
    User.objects.filter(pk=cast.admin.user.pk).update(is_staff=False)
    send()
    assert not mailing.messages
    rows = AlertDelivery.objects.all()
    assert [(row.state, bool(row.error)) for row in rows] == [("given_up", True)] * 2


def test_addresses_are_encrypted_and_never_given_back(cast: Cast, hook: Receiver) -> None:
    from monitoring.alerts.representation import route_json

    made = route(cast, hook)
    routes.change(cast.admin, made, {"name": "other", "secret": "deep-secret-2"})
    shown = str(route_json(AlertRoute.objects.get())) + str(
        list(AuditEntry.objects.values_list("data", flat=True))
    )
    assert "deep-secret" not in shown + str(AlertRoute.objects.values().get()) and "s3cret" not in shown


def test_an_owners_route_gets_only_their_tenants_alerts_and_stays_outside(
    cast: Cast, firings: Firings, hook: Receiver
) -> None:
    made = routes.create(
        cast.alice, {"name": "mine", "way": "webhook", "address": hook.url, "tenant": "demo"}
    )
    firings.add(1, tenant_id=cast.second.pk)
    firings.add(2)
    firings.add(3, tenant_id=cast.demo.pk)
    look()
    send()
    row = AlertDelivery.objects.get()
    assert row.alert and row.alert.tenant == cast.demo
    assert row.state == "waiting" and row.error and not hook.got  # it is an address of this machine
    with pytest.raises(NotAllowed):
        routes.change(cast.alice, made, {"may_reach_inside": True})
    routes.change(cast.admin, made, {"may_reach_inside": True})
    send()
    assert len(hook.got) == 1


def test_what_an_admin_allowed_of_one_address_is_not_allowed_of_another(cast: Cast) -> None:
    wanted = {"name": "mine", "way": "webhook", "address": "https://x.test/", "tenant": "demo"}
    made = routes.create(cast.alice, wanted)

    def may_reach_inside() -> bool:
        return AlertRoute.objects.get(pk=made.pk).may_reach_inside

    routes.change(cast.admin, made, {"may_reach_inside": True})
    routes.change(cast.alice, made, {"name": "other"})
    assert may_reach_inside()
    routes.change(cast.admin, made, {"address": "https://y.test/"})
    assert may_reach_inside()
    routes.change(cast.alice, made, {"address": "https://z.test/", "may_reach_inside": True})
    assert not may_reach_inside()


def test_an_owners_route_reaches_no_network_that_is_known_of_a_cluster(cast: Cast) -> None:
    wanted = {"name": "mine", "way": "webhook", "address": "https://x.test/", "tenant": "demo"}
    made = routes.create(cast.alice, wanted)
    cast.cluster.pod_cidrs = ["10.1.0.0/16"]
    cast.cluster.found_networks = {
        "pods": ["10.2.0.0/16"],
        "services": ["10.3.0.0/16"],
        "api": ["10.4.0.1/32"],
        "nodes": ["192.0.2.1/32"],
    }
    cast.cluster.save()
    refused = sending.refused_networks(made) or []
    for address in (
        "10.1.0.1",
        "10.2.0.1",
        "10.3.0.1",
        "10.4.0.1",
        "192.0.2.1",
        "100.100.100.200",
        "fd00:ec2::254",
    ):
        assert is_inside(ip_address(address), refused)
    assert not is_inside(ip_address("192.0.2.2"), refused)


def test_who_may_make_routes(cast: Cast) -> None:
    wanted = {"name": "x", "way": "webhook", "address": "https://x.test/", "tenant": "demo"}
    for actor, refusal in ((cast.bob, NotAllowed), (cast.carol, NotThere)):
        with pytest.raises(refusal):
            routes.create(actor, wanted)
    with pytest.raises(NotAllowed):
        routes.create(cast.alice, wanted | {"tenant": None})
    with pytest.raises(Invalid):
        routes.create(cast.alice, wanted | {"way": "mail", "address": "carol@example.org"})
    assert routes.create(cast.alice, wanted | {"way": "mail", "address": "bob@example.org"}).host
    for _ in range(routes.MOST_OF_A_TENANT - 1):
        routes.create(cast.alice, wanted)
    with pytest.raises(Invalid):
        routes.create(cast.alice, wanted)


def test_the_default_route_is_disabled_and_not_deleted(cast: Cast) -> None:
    look()
    default = AlertRoute.objects.get()
    with pytest.raises(Conflict):
        routes.delete(cast.admin, default)
    assert routes.change(cast.admin, default, {"enabled": False})
    look()
    assert not AlertRoute.objects.get().is_enabled


def test_a_heartbeat_calls_its_address_every_few_minutes(cast: Cast, hook: Receiver) -> None:
    made = routes.create(
        cast.admin, {"name": "alive", "way": "heartbeat", "address": hook.url, "every_minutes": 2}
    )
    assert heartbeat.due() == [made.pk] and heartbeat.due() == []
    heartbeat.beat(made.pk)
    assert [got.method for got in hook.got] == ["GET"] and AlertRoute.objects.get().last_beat_at
    later(2 * MINUTE)
    assert heartbeat.due() == [made.pk]
    hook.status = 404
    heartbeat.beat(made.pk)
    row = AlertRoute.objects.get()
    assert row.beat_error and row.last_beat_at and row.last_beat_at < timezone.now() - MINUTE
