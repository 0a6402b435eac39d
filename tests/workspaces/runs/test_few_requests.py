"""Number of requests that Berth makes to the cluster's API: a hundred starts may come at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.cast import Cast
from tests.shared.played_api import PlayedApi
from tests.workspaces.play import Play
from tests.workspaces.specs import spec
from workspaces.launch.launch import launch
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db]

CALLS = ("get", "list", "apply", "create", "delete", "json_patch", "merge_patch")
Noted = Counter[tuple[str, str]]


class NotingApi(PlayedApi):
    """Cluster in memory that notes each request as its verb and kind."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: Noted = Counter()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in CALLS:
            return found

        def call(what: Any, *rest: Any, **options: Any) -> Any:
            self.noted[name, what["kind"] if isinstance(what, dict) else what] += 1
            return found(what, *rest, **options)

        return call


@pytest.fixture
def play(cast: Cast) -> Play:
    return Play(cast, NotingApi())


def noted_while(play: Play, action: Callable[[], object]) -> Noted:
    api = play.api
    assert isinstance(api, NotingApi)
    api.noted.clear()
    action()
    return +api.noted


def test_a_start_makes_its_objects_and_reads_nothing(play: Play) -> None:
    play.begin_ready()  # the namespace and the start files are there

    def start_another() -> None:
        play.id = launch(play.cast.alice, spec(name="next")).pk
        play.until_phase("ready")

    assert noted_while(play, start_another) == {
        ("create", "PersistentVolumeClaim"): 1,
        ("merge_patch", "PersistentVolume"): 1,
        ("apply", "Secret"): 1,
        ("apply", "Service"): 1,
        ("create", "Pod"): 1,
    }


def test_a_start_after_a_stop_makes_the_pod_and_its_secrets(play: Play) -> None:
    play.begin_ready()
    play.stop()

    def start() -> None:
        lifecycle.start(play.cast.alice, play.row)
        play.until_phase("ready")

    assert noted_while(play, start) == {
        ("apply", "Secret"): 1,  # tokens are new for each run
        ("apply", "Service"): 1,
        ("create", "Pod"): 1,
    }


def test_a_stop_deletes_the_pod_and_lets_it_go(play: Play) -> None:
    play.begin_ready()
    assert noted_while(play, play.stop) == {("delete", "Pod"): 1, ("json_patch", "Pod"): 1}


def test_a_deletion_with_its_files_makes_one_request_for_each_object_and_two_for_the_pod(play: Play) -> None:
    play.begin_ready()

    def delete() -> None:
        lifecycle.delete(play.cast.alice, play.row, delete_disk=True)
        play.until(lambda row: row.deleted_at is not None)

    assert noted_while(play, delete) == {
        ("delete", "Pod"): 1,
        ("json_patch", "Pod"): 1,
        ("delete", "Service"): 1,
        ("delete", "Secret"): 1,
        ("merge_patch", "PersistentVolume"): 1,
        ("delete", "PersistentVolumeClaim"): 1,
    }


def test_a_look_at_one_that_is_ready_asks_nothing(play: Play) -> None:
    play.begin_ready()
    assert noted_while(play, play.look) == {}
