"""Tests that changes are announced together: soon, once per object, and again if they could not be stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError

from clusters import signals
from clusters.models import Cluster
from clusters.watch import changes
from clusters.watch.changes import Changes
from clusters.watch.watching import Changed
from vitals import figures


class Receiver:
    """Receiver that keeps each call's changes as (uid, state), and pauses or fails on demand."""

    def __init__(self) -> None:
        self.told: list[list[tuple[str, int]]] = []
        self.heard = threading.Semaphore(0)
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.fails_meanwhile: Callable[[], None] | None = None

    def hear(self, *, changes: list[Changed], **_: Any) -> None:
        if self.fails_meanwhile is not None:
            meanwhile, self.fails_meanwhile = self.fails_meanwhile, None
            meanwhile()
            raise OperationalError("the database system is shutting down")
        self.told.append([(step.body["metadata"]["uid"], step.body["state"]) for step in changes])
        self.heard.release()
        assert self.goes_on.wait(10)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(changes, "PAUSE_AFTER_FAULT_SECONDS", 0.01)
    receiver = Receiver()
    signals.objects_changed.connect(receiver.hear)
    yield receiver
    signals.objects_changed.disconnect(receiver.hear)


@pytest.fixture
def gathering(receiver: Receiver, transactional_db: None) -> Iterator[Changes]:
    gathering = Changes(Cluster(slug="any"))
    gathering.start()
    yield gathering
    receiver.goes_on.set()
    gathering.stop()
    gathering.join(10)
    assert not gathering.is_alive()


def change(uid: str, state: int) -> Changed:
    return Changed("MODIFIED", {"metadata": {"uid": uid}, "state": state})


def test_later_changes_are_announced_together(gathering: Changes, receiver: Receiver) -> None:
    receiver.goes_on.clear()
    gathering.add(change("a", 1))
    assert receiver.heard.acquire(timeout=10)
    for state in (2, 3):
        gathering.add(change("a", state))
        gathering.add(change("b", state))
    receiver.goes_on.set()
    assert receiver.heard.acquire(timeout=10)
    assert receiver.told == [[("a", 1)], [("a", 3), ("b", 3)]]


def test_what_could_not_be_written_down_is_told_again(gathering: Changes, receiver: Receiver) -> None:
    receiver.fails_meanwhile = lambda: None
    gathering.add(change("a", 1))
    assert receiver.heard.acquire(timeout=10)
    assert receiver.told == [[("a", 1)]]


def test_the_newest_state_is_told_after_a_fault(gathering: Changes, receiver: Receiver) -> None:
    receiver.fails_meanwhile = lambda: gathering.add(change("a", 2))
    gathering.add(change("a", 1))
    assert receiver.heard.acquire(timeout=10)
    assert receiver.told == [[("a", 2)]]


def test_its_lag_is_told_once_it_was_written_down(gathering: Changes, receiver: Receiver) -> None:
    figures._tally.begin_anew()
    receiver.fails_meanwhile = lambda: None
    metadata = {"uid": "a", "managedFields": [{"time": "2026-03-01T10:00:00Z"}]}
    gathering.add(Changed("MODIFIED", {"kind": "Pod", "metadata": metadata, "spec": {}, "state": 1}))
    assert receiver.heard.acquire(timeout=10)
    gathering.stop()
    gathering.join(10)
    counted = figures._tally.take()
    assert [n for (name, _), n in counted.items() if name == "berth_watch_lag_seconds_bucket"] == [1]
