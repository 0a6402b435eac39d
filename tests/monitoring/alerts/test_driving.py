"""Who makes the passes: a worker, or the watcher and the queue's own process while the other is dead."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.db.models.functions import Now
from django.utils import timezone

from monitoring.alerts import driving, passes, routes, sources
from monitoring.alerts.firing import Firing
from monitoring.models import Alert, AlertDelivery, AlertPass
from tests.cast import Cast
from tests.monitoring.alerts.stage import Firings, later, look
from tests.shared.servers.receiver import Receiver
from vitals.models import Process

pytestmark = pytest.mark.django_db(transaction=True)
RAISE, SEND = "monitoring.tasks.raise_alerts", "monitoring.tasks.send_alerts"


def heard(*parts: str) -> None:
    for part in parts:
        Process.objects.create(part=part, host="x", pid=1, seen_at=Now())


def test_a_tick_enqueues_one_pass_until_it_runs(enqueued: list[str]) -> None:
    heard("watcher", "worker", "queue")
    driving.on_tick()
    driving.on_tick()
    assert enqueued == [RAISE]
    passes.begins()
    driving.on_tick()
    assert enqueued == [RAISE, RAISE]


def test_a_pass_that_takes_long_delays_nobody_who_asks_for_another(
    firings: Firings, enqueued: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asks() -> list[Firing]:
        asking = threading.Thread(target=want)
        asking.start()
        asking.join(30)
        return []

    def want() -> None:
        with transaction.atomic():
            AlertPass.objects.select_for_update(nowait=True).get()
        passes.want()
        connections.close_all()

    passes.want()
    monkeypatch.setattr(sources, "_sources", {"test": asks})
    look()
    assert enqueued == [RAISE, RAISE]


def test_a_pass_that_died_with_its_worker_is_enqueued_again(enqueued: list[str]) -> None:
    passes.want()
    AlertPass.objects.update(raise_queued_at=timezone.now() - timedelta(seconds=20))
    passes.want()
    assert enqueued == [RAISE, RAISE]


def test_while_no_worker_is_heard_the_watcher_raises_and_sends_by_itself(
    cast: Cast, firings: Firings, hook: Receiver, enqueued: list[str]
) -> None:
    routes.create(cast.admin, {"name": "hook", "way": "webhook", "address": hook.url})
    heard("watcher", "queue")
    firings.add()
    driving.on_tick()
    wait_for(Alert.objects.exists)
    later(timedelta(seconds=10))
    wait_for(lambda: not driving._own_pass.locked())
    driving.on_tick()
    wait_for(lambda: hook.got)
    wait_for(lambda: not driving._own_pass.locked())
    assert RAISE not in enqueued and AlertDelivery.objects.get().state == "sent"


def test_while_no_watcher_is_heard_the_queues_process_enqueues(
    cast: Cast, firings: Firings, hook: Receiver, enqueued: list[str]
) -> None:
    heard("worker", "queue")
    driving.stand_in_once()
    assert enqueued == [RAISE]
    routes.create(cast.admin, {"name": "hook", "way": "webhook", "address": hook.url})
    firings.add()
    look()
    later(timedelta(seconds=10))
    driving.stand_in_once()
    assert enqueued[-1] == SEND


def test_while_the_watcher_is_heard_the_queues_process_does_nothing(enqueued: list[str]) -> None:
    heard("watcher", "worker", "queue")
    driving.stand_in_once()
    assert not enqueued


def wait_for(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
