"""Passes: what becomes of alerts as firings come and go, and who is to be told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.errors import Conflict
from accounts.models import AuditEntry
from monitoring.alerts import actions, raising, sources
from monitoring.models import Alert, AlertDelivery, AlertMember, AlertRoute, Severity, Trouble
from tests.cast import Cast
from tests.monitoring.alerts.stage import Firings, alert, later, look, told
from tests.shared.servers.smtp import MailServer

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def test_nodes_that_are_lost_together_are_one_alert_with_its_members(cast: Cast, firings: Firings) -> None:
    for number in range(40):
        firings.add(number, cluster_id=cast.cluster.pk, pool_ids=(cast.pool.pk,))
    look()
    found = alert()
    assert (found.count, found.open_count, found.state) == (40, 40, "firing")
    assert found.pools == [str(cast.pool.pk)] and found.severity == Severity.CRITICAL
    look()
    assert Alert.objects.count() == 1 and AlertMember.objects.count() == 40


def test_all_admins_are_mailed_from_the_first_minute(
    cast: Cast, firings: Firings, mailing: MailServer
) -> None:
    firings.add()
    look()
    rows = AlertDelivery.objects.all()
    assert [(row.recipient_id, row.occasion) for row in rows] == [(cast.admin.user.pk, "firing")]


def test_an_admin_can_turn_that_mail_off(cast: Cast, firings: Firings, mailing: MailServer) -> None:
    look()
    AlertRoute.objects.update(is_enabled=False)
    firings.add()
    look()
    assert not AlertDelivery.objects.exists() and Alert.objects.exists()


def test_without_a_mail_server_no_mail_waits_for_ever(cast: Cast, firings: Firings) -> None:
    firings.add()
    look()
    assert not AlertDelivery.objects.exists()


def test_routes_choose_by_severity_cluster_pool_and_tenant(cast: Cast, firings: Firings) -> None:
    def route(name: str, **only: object) -> None:
        AlertRoute.objects.create(name=name, way="webhook", **only)

    route("all", least_severity=Severity.INFO)
    route("critical", least_severity=Severity.CRITICAL)
    route("cluster", cluster=cast.cluster)
    route("pool", pool=cast.pool)
    route("tenant", tenant=cast.demo)
    firings.add(1, "node_lost", cluster_id=cast.cluster.pk, pool_ids=(cast.pool.pk,))
    firings.add(2, "volume_nearly_full", severity=Severity.WARNING, tenant_id=cast.demo.pk)
    firings.add(3, "agent_token_unused", severity=Severity.INFO)
    look()
    by_code: dict[str, set[str]] = {}
    for code, name in AlertDelivery.objects.values_list("alert__code", "route__name"):
        by_code.setdefault(code, set()).add(name)
    assert by_code == {
        "node_lost": {"all", "critical", "cluster", "pool"},
        "volume_nearly_full": {"all", "tenant"},
        "agent_token_unused": {"all"},
    }


def test_who_was_told_hears_that_it_is_over(cast: Cast, firings: Firings, mailing: MailServer) -> None:
    one = firings.add()
    look()
    AlertDelivery.objects.update(attempts=1, state="sent", due_at=None)
    firings.end(one)
    look()
    assert alert().state == "resolved" and told(alert().pk) == [("firing", "sent"), ("resolved", "waiting")]


def test_what_is_over_before_it_was_sent_is_told_all_the_same(
    cast: Cast, firings: Firings, mailing: MailServer
) -> None:
    one = firings.add()
    look()
    firings.end(one)
    look()
    assert alert().state == "resolved" and told(alert().pk) == [
        ("firing", "waiting"),
        ("resolved", "waiting"),
    ]


def test_what_a_person_resolves_at_once_is_told_nobody(
    cast: Cast, firings: Firings, mailing: MailServer
) -> None:
    firings.add()
    look()
    actions.resolve(cast.admin, alert())
    assert not told(alert().pk)


def test_what_flaps_is_one_alert_and_told_once(cast: Cast, firings: Firings, mailing: MailServer) -> None:
    for _ in range(10):
        one = firings.add()
        look()
        AlertDelivery.objects.filter(occasion="firing").update(attempts=1, state="sent", due_at=None)
        firings.end(one)
        look()
        later(timedelta(seconds=20))
    firings.add()
    look()
    assert alert().state == "firing" and told(alert().pk) == [("firing", "sent")]


def test_what_was_told_as_over_and_stays_is_told_again_after_a_while(
    cast: Cast, firings: Firings, mailing: MailServer
) -> None:
    one = firings.add()
    look()
    AlertDelivery.objects.update(attempts=1, state="sent", due_at=None)
    firings.end(one)
    look()
    AlertDelivery.objects.filter(occasion="resolved").update(attempts=1, state="sent", due_at=None)
    later(3 * MINUTE)
    firings.add()
    look()
    assert (alert().round, alert().state) == (2, "firing")
    again = AlertDelivery.objects.get(round=2)
    assert again.due_at and again.due_at - alert().round_at >= 5 * MINUTE
    firings.clear()
    look()
    assert not AlertDelivery.objects.filter(round=2).exists()


def test_one_that_comes_back_much_later_is_another_alert(cast: Cast, firings: Firings) -> None:
    one = firings.add()
    look()
    firings.end(one)
    look()
    later(timedelta(hours=1))
    firings.add()
    look()
    assert sorted(Alert.objects.values_list("state", flat=True)) == ["firing", "resolved"]


def test_one_that_comes_back_much_later_is_told_though_its_alert_is_still_open(
    cast: Cast, firings: Firings, mailing: MailServer
) -> None:
    one = firings.add(1)
    firings.add(2)
    look()
    firings.end(one)
    look()
    later(timedelta(hours=1))
    firings.add(1)
    look()
    assert sorted(Alert.objects.values_list("state", "open_count")) == [("firing", 1), ("firing", 1)]
    assert AlertDelivery.objects.filter(occasion="firing").count() == 2


def test_a_source_that_fails_ends_nothing(
    cast: Cast, firings: Firings, monkeypatch: pytest.MonkeyPatch
) -> None:
    firings.add()
    look()

    def fails() -> list[object]:
        Trouble.objects.get(code="there is none")
        return []

    monkeypatch.setattr(sources, "_sources", {"test": fails})
    look()
    assert alert().state == "firing"


def test_a_firing_with_long_fields_is_cut_and_raised(cast: Cast, firings: Firings) -> None:
    firings.add(1, name="n" * 1000, link="/nodes/?node=" + "x" * 300)
    firings.add(2, code="gpu_lost" + "x" * 100, link="/" + "x" * 300)
    look()
    look()
    rows = AlertMember.objects.order_by("key")
    assert [(len(row.name), row.link, len(row.code)) for row in rows] == [(512, "/nodes/", 9), (0, "", 64)]


def test_an_acknowledged_alert_is_not_escalated(cast: Cast, firings: Firings) -> None:
    AlertRoute.objects.create(name="night", way="webhook", escalates_after_minutes=15)
    firings.add(1)
    firings.add(2, "gpu_lost")
    look()
    actions.acknowledge(cast.admin, alert(code="gpu_lost"))
    later(14 * MINUTE)
    look()
    assert not AlertDelivery.objects.exists()
    later(2 * MINUTE)
    look()
    look()
    escalated = alert(code="node_lost")
    assert told(escalated.pk) == [("escalated", "waiting")] and escalated.escalated_at
    assert not told(alert(code="gpu_lost").pk)


def test_each_route_for_later_gets_its_turn_once(cast: Cast, firings: Firings) -> None:
    for name, minutes in (("team", 10), ("night", 60)):
        AlertRoute.objects.create(name=name, way="webhook", escalates_after_minutes=minutes)
    firings.add()
    look()

    def told_routes() -> list[str]:
        return sorted(AlertDelivery.objects.values_list("route__name", flat=True))

    later(11 * MINUTE)
    look()
    first = alert().escalated_at
    assert told_routes() == ["team"] and first
    look()
    later(50 * MINUTE)
    look()
    look()
    assert told_routes() == ["night", "team"]
    assert alert().escalated_at == first - 50 * MINUTE


def test_a_silenced_alert_is_told_when_the_silence_ends(cast: Cast, firings: Firings) -> None:
    AlertRoute.objects.create(name="hook", way="webhook")
    firings.add()
    look()
    actions.silence(cast.admin, alert(), 30)
    later(31 * MINUTE)
    look()
    assert (alert().state, alert().round) == ("firing", 2)
    assert [row.round for row in AlertDelivery.objects.all()] == [2]


def test_an_alert_that_ends_in_silence_tells_nobody(cast: Cast, firings: Firings) -> None:
    AlertRoute.objects.create(name="hook", way="webhook")
    one = firings.add()
    look()
    actions.silence(cast.admin, alert(), 30)
    firings.end(one)
    look()
    assert alert().state == "resolved" and not told(alert().pk)


def test_those_who_knew_of_it_are_told_of_its_end_after_the_silence(cast: Cast, firings: Firings) -> None:
    AlertRoute.objects.create(name="hook", way="webhook")
    one = firings.add()
    look()
    AlertDelivery.objects.update(state="sent", due_at=None, attempts=1, sent_at=timezone.now())
    actions.silence(cast.admin, alert(), 30)
    firings.end(one)
    look()
    assert AlertDelivery.objects.get(occasion="resolved").due_at == alert().silenced_until
    firings.add()
    look()
    assert (alert().state, told(alert().pk)) == ("silenced", [("firing", "sent")])
    actions.resolve(cast.admin, alert())
    at_once = AlertDelivery.objects.get(occasion="resolved").due_at
    assert at_once is not None and at_once < timezone.now() + 2 * MINUTE


def test_what_is_resolved_by_hand_stays_so_while_it_fires(cast: Cast, firings: Firings) -> None:
    one = firings.add()
    look()
    actions.resolve(cast.admin, alert())
    look()
    assert alert().state == "resolved"
    firings.end(one)
    look()
    firings.add()
    look()
    assert sorted(Alert.objects.values_list("state", flat=True)) == ["firing", "resolved"]


def test_actions_are_in_the_trail_and_a_resolved_alert_takes_no_more(cast: Cast, firings: Firings) -> None:
    firings.add()
    look()
    assert actions.acknowledge(cast.admin, alert()) and not actions.acknowledge(cast.admin, alert())
    assert actions.resolve(cast.admin, alert()) and not actions.resolve(cast.admin, alert())
    with pytest.raises(Conflict):
        actions.silence(cast.admin, alert(), 5)
    done = AuditEntry.objects.order_by("at").values_list("action", flat=True)
    assert list(done) == ["alert.acknowledge", "alert.resolve"]


def test_an_alert_that_becomes_critical_reaches_who_wants_only_critical(cast: Cast, firings: Firings) -> None:
    AlertRoute.objects.create(name="hook", way="webhook", least_severity=Severity.CRITICAL)
    firings.add(1, severity=Severity.WARNING)
    look()
    assert not AlertDelivery.objects.exists()
    firings.add(2)
    look()
    assert AlertDelivery.objects.count() == 1


def test_open_troubles_are_alerts(cast: Cast) -> None:
    of = {"cluster": cast.cluster, "since": timezone.now()}
    Trouble.objects.create(
        about="node", subject="gpu-1", node="gpu-1", code="node_lost", takes_out=True, **of
    )
    volume = f"{cast.demo.namespace}/home"
    Trouble.objects.create(
        about="volume", subject=volume, code="volume_nearly_full", data={"percent": 95}, **of
    )
    raising.look()
    lost, full = alert(code="node_lost"), alert(code="volume_nearly_full")
    assert lost.severity == Severity.CRITICAL and lost.pools == [str(cast.pool.pk)] and lost.tenant is None
    assert full.severity == Severity.WARNING and full.tenant == cast.demo
    Trouble.objects.update(ended_at=timezone.now() - timedelta(seconds=21))
    raising.look()
    assert set(Alert.objects.values_list("state", flat=True)) == {"resolved"}


def test_a_trouble_that_is_over_before_the_next_pass_is_told_and_shown(
    cast: Cast, mailing: MailServer
) -> None:
    now = timezone.now()
    Trouble.objects.create(
        cluster=cast.cluster, about="node", subject="n", node="n", code="node_lost", since=now, ended_at=now
    )
    raising.look()
    assert alert().state == "firing" and told(alert().pk) == [("firing", "waiting")]
    Trouble.objects.update(ended_at=now - timedelta(seconds=21))
    AlertDelivery.objects.update(attempts=1, state="sent", due_at=None)
    raising.look()
    assert alert().state == "resolved" and told(alert().pk) == [("firing", "sent"), ("resolved", "waiting")]
