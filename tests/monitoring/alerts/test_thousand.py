"""A switch dies: 1,000 troubles of 200 nodes within a minute."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Node
from monitoring.alerts import raising, routes
from monitoring.models import Alert, AlertDelivery, AlertMember, Trouble
from tests.cast import Cast
from tests.monitoring.alerts.stage import send
from tests.shared.clients import ask, browser, script
from tests.shared.servers.receiver import Receiver
from tests.shared.servers.smtp import MailServer

pytestmark = pytest.mark.django_db

NODES, SECONDS, EVERY = 200, 60, 5
CODES = ("node_lost", "agent_silent", "gpu_stuck", "volume_attach_stuck", "network_plugin_down")


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.monotonic()
    found = call()
    return time.monotonic() - began, found


@pytest.mark.slow
def test_a_thousand_troubles_in_a_minute_are_at_most_five_messages_and_none_is_lost(
    cast: Cast, mailing: MailServer, hook: Receiver, found: Callable[[str, str], None]
) -> None:
    routes.create(cast.admin, {"name": "hook", "way": "webhook", "address": hook.url})
    Node.objects.bulk_create(
        Node(cluster=cast.cluster, name=f"n{number}", labels={"rack": "7"}) for number in range(NODES)
    )
    raising.look()
    passes = [make_troubles(cast, start, mailing) for start in range(0, SECONDS, EVERY)]
    send(timedelta(seconds=30))
    assert Trouble.objects.count() == AlertMember.objects.count() == 1000
    assert Alert.objects.count() == len(CODES) and sum(Alert.objects.values_list("count", flat=True)) == 1000
    assert len(mailing.messages) <= 5 and len(hook.got) <= 5
    told = [one["code"] for got in hook.got for one in got.json["alerts"]]
    assert sorted(told) == sorted(CODES)
    assert set(AlertDelivery.objects.values_list("state", flat=True)) == {"sent"}

    idle, _ = timed(raising.look)
    admin = browser(cast.admin)
    page, answer = timed(lambda: admin.get("/alerts/"))
    one, detail = timed(lambda: admin.get(f"/alerts/{Alert.objects.order_by('pk')[0].pk}/"))
    listed, over_api = timed(lambda: ask(script(cast.admin), "GET", "alerts/?state=firing"))
    assert answer.status_code == detail.status_code == over_api.status_code == 200
    found(
        "1,000 troubles in a minute",
        f"{len(mailing.messages)} mails, {len(hook.got)} webhooks; a pass at most {max(passes):.2f} s, the next one "
        f"{idle:.2f} s; list {page:.2f} s, alert {one:.2f} s, API {listed:.2f} s",
    )
    assert max(passes) < 5 and max(page, one, listed) < 2

    Trouble.objects.update(ended_at=timezone.now() - timedelta(seconds=21))
    raising.look()
    send(timedelta(minutes=2))
    assert set(Alert.objects.values_list("state", flat=True)) == {"resolved"}
    assert len(hook.got) <= 6 and len(mailing.messages) <= 6  # one more, for all that is over


def make_troubles(cast: Cast, start: int, mailing: MailServer) -> float:
    """Make the troubles of the next seconds, then a pass and what it sends. Return how long the pass took."""
    each = 1000 * EVERY // SECONDS
    first = 1000 * start // SECONDS
    numbers = range(first, min(1000, first + each + 1))
    there = set(Trouble.objects.values_list("node", "code"))
    rows = [(f"n{number // len(CODES)}", CODES[number % len(CODES)]) for number in numbers]
    Trouble.objects.bulk_create(
        Trouble(
            cluster=cast.cluster,
            about="node",
            subject=node,
            node=node,
            code=code,
            takes_out=True,
            since=timezone.now(),
        )
        for node, code in rows
        if (node, code) not in there
    )
    took, _ = timed(raising.look)
    send(timedelta(seconds=EVERY))
    return took
