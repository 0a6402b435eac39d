"""Full disk under the trial cluster: writes are refused or lost, and work again once there is room."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.api import Api
from devcluster.events import Recorder
from devcluster.resources import NAMESPACE
from devcluster.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Store with a full disk, until the test gives it room."""
    store = Store(tmp_path / "objects.sqlite")
    give_room(store, pages=8)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        for number in range(1000):
            store.put(NAMESPACE, namespace(f"before-{number}"))
    yield store


def give_room(store: Store, *, pages: int) -> None:
    store._db.execute(f"PRAGMA max_page_count={pages}")


def namespace(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "annotations": {"long": "x" * 500}}}


def test_what_comes_after_is_written_once_there_is_room(store: Store) -> None:
    give_room(store, pages=1000)
    store.put(NAMESPACE, namespace("after"))
    assert store.get(NAMESPACE, "", "after")


def test_an_event_that_cannot_be_written_is_no_fault_of_who_tells_it(store: Store) -> None:
    recorder = Recorder(Api(store), "kubelet")
    for number in range(20):
        recorder.event(NAMESPACE, namespace("before-0"), "Normal", "Pulling", f"Pulling image {number}")
