"""The task queue uses the database's clock: a machine's own may be wrong, or be set."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection, connections
from django.utils import timezone
from django_q.models import OrmQ

from monitoring.alerts import driving
from portal import task_broker
from portal.task_broker import NotifyBroker
from tests.shared.concurrency import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


@pytest.fixture
def broker() -> NotifyBroker:
    return NotifyBroker(list_key="test")


@pytest.mark.parametrize("wrong_by", [-HOUR, HOUR])
def test_a_task_is_taken_at_once_however_wrong_the_clock_is_where_it_was_queued(
    broker: NotifyBroker, monkeypatch: pytest.MonkeyPatch, wrong_by: timedelta
) -> None:
    def wrong() -> datetime:
        return datetime.now(tz=timezone.get_default_timezone()) + wrong_by

    with monkeypatch.context() as there:
        there.setattr(timezone, "now", wrong)
        key = broker.enqueue("a task")
    assert broker._take() == [(key, "a task")]
    assert broker._take() is None


def test_a_task_that_was_taken_before_the_clock_was_set_back_is_not_locked_for_as_long(
    broker: NotifyBroker,
) -> None:
    key = broker.enqueue("a task")
    OrmQ.objects.update(lock=timezone.now() + HOUR)
    assert broker._take() == [(key, "a task")]


def test_whoever_begins_to_serve_the_queue_says_so_once(
    broker: NotifyBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_broker, "beat_beside", lambda name: None)
    monkeypatch.setattr(driving, "_stand_in", lambda: None)
    told: list[object] = []
    task_broker.began.connect(listener := lambda sender, **_: told.append(sender))
    broker.enqueue("first")
    broker.enqueue("second")
    assert [broker.dequeue()[0][1], broker.dequeue()[0][1]] == ["first", "second"]
    task_broker.began.disconnect(listener)
    assert told == [NotifyBroker]


def test_tasks_are_taken_in_order_and_each_by_one(broker: NotifyBroker) -> None:
    first, second = broker.enqueue("first"), broker.enqueue("second")
    taken: list[object] = []
    connection.set_autocommit(False)
    try:
        assert broker._take() == [(first, "first")]
        other = elsewhere(lambda: taken.append(NotifyBroker(list_key="test")._take()))
        other.join(10)
        assert taken == [[(second, "second")]]  # while the first is still being taken
    finally:
        connection.commit()
        connection.set_autocommit(True)
    connections.close_all()
