"""The task queue uses the database's clock: a machine's own may be wrong, or be set."""

from __future__ import annotations

import json
import pickle
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from clusters.errands import enqueue
from monitoring.alerts import driving
from portal.queue import broker as queue
from portal.queue import data
from portal.queue.broker import NotifyBroker
from tests.shared.concurrency import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


def task(name: str, func: str = "accounts.tasks.send_mail", **options: Any) -> str:
    """A task as django-q2 hands it to its broker."""
    body = {"id": name, "name": name, "func": func, "args": (), "kwargs": {}, "started": timezone.now()}
    return str(SignedPackage.dumps(body | options))


def names(taken: list[tuple[int, str]] | None) -> list[tuple[int, str]]:
    return [(key, json.loads(payload)["name"]) for key, payload in taken or []]


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
        key = broker.enqueue(task("a task"))
    assert names(broker._take()) == [(key, "a task")]
    assert broker._take() is None


def test_a_task_that_was_taken_before_the_clock_was_set_back_is_not_locked_for_as_long(
    broker: NotifyBroker,
) -> None:
    key = broker.enqueue(task("a task"))
    OrmQ.objects.update(lock=timezone.now() + HOUR)
    assert names(broker._take()) == [(key, "a task")]


def test_whoever_begins_to_serve_the_queue_says_so_once(
    broker: NotifyBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "beat_beside", lambda name: None)
    monkeypatch.setattr(driving, "_stand_in", lambda: None)
    told: list[object] = []
    queue.began.connect(listener := lambda sender, **_: told.append(sender))
    broker.enqueue(task("first"))
    broker.enqueue(task("second"))
    assert [SignedPackage.loads(broker.dequeue()[0][1])["name"] for _ in range(2)] == ["first", "second"]
    queue.began.disconnect(listener)
    assert told == [NotifyBroker]


def test_errands_are_taken_before_all_other_tasks(broker: NotifyBroker) -> None:
    """Somebody waits for them, however many surveys are queued."""
    broker.enqueue(task("survey"))
    with transaction.atomic():
        enqueue.run(uuid4())
    taken = [json.loads(payload)["func"] for _ in range(2) for _key, payload in broker._take() or []]
    assert taken == ["clusters.errands.tasks.run", "accounts.tasks.send_mail"]


def test_tasks_are_taken_in_order_and_each_by_one(broker: NotifyBroker) -> None:
    first, second = broker.enqueue(task("first")), broker.enqueue(task("second"))
    taken: list[object] = []
    connection.set_autocommit(False)
    try:
        assert names(broker._take()) == [(first, "first")]
        other = elsewhere(lambda: taken.append(names(NotifyBroker(list_key="test")._take())))
        other.join(10)
        assert taken == [[(second, "second")]]  # while the first is still being taken
    finally:
        connection.commit()
        connection.set_autocommit(True)
    connections.close_all()


class TestTasksAsData:
    """Somebody with web's credentials and key can write the queue; the worker runs only tasks of Berth."""

    @pytest.fixture(autouse=True)
    def listening(self, broker: NotifyBroker, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(NotifyBroker, "_has_begun", True)
        monkeypatch.setattr(Conf, "POLL", 0.01)

    def test_no_pickle_is_in_the_queue_and_the_arguments_come_through(self, broker: NotifyBroker) -> None:
        broker.enqueue(task("a", "quotas.tasks.admission_pass", args=("x", 1), group="admission"))
        assert json.loads(OrmQ.objects.get().payload)["args"] == ["x", 1]
        [(_key, signed)] = broker.dequeue()
        found = SignedPackage.loads(signed)
        assert (found["func"], found["args"], found["group"]) == (
            "quotas.tasks.admission_pass",
            ("x", 1),
            "admission",
        )

    def test_a_signed_pickle_in_the_queue_is_dropped_unread(
        self, broker: NotifyBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        OrmQ.objects.create(key="test", payload=task("evil"), lock=timezone.now())
        monkeypatch.setattr(pickle, "loads", lambda *_: pytest.fail("a pickle was read"))
        assert not broker.dequeue() and not OrmQ.objects.exists()

    @pytest.mark.parametrize(
        "change",
        [
            {"func": "os.system", "args": ["id"]},
            {"func": "builtins.eval", "args": ["1"]},
            {"func": "monitoring.tasks.steps.look"},
            {"func": "monitoring.tasks.UUID"},  # imported there, not defined
            {"func": "clusters.connections.connect"},
            {"func": "accounts.tasks.send_mail", "hook": "os.system"},
            {"args": [{"a": "b"}]},
            {"args": "text"},
            {"kwargs": []},
            {"id": 1},
        ],
    )
    def test_anything_but_a_registered_function_with_plain_arguments_is_dropped(
        self, broker: NotifyBroker, change: dict[str, Any]
    ) -> None:
        payload = json.loads(data.pack(task("a"))) | change
        OrmQ.objects.create(key="test", payload=json.dumps(payload), lock=timezone.now())
        assert not broker.dequeue() and not OrmQ.objects.exists()

    def test_a_task_that_no_worker_would_run_is_refused_where_it_is_enqueued(
        self, broker: NotifyBroker
    ) -> None:
        for wrong in (task("a", "os.system"), task("a", args=(object,))):
            with pytest.raises(data.NoTask):
                broker.enqueue(wrong)
        assert not OrmQ.objects.exists()
