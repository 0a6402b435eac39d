"""Number of requests that a run makes to the cluster's API: a hundred starts may come at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cast import Cast
from tests.shared.looking import look
from tests.shared.played_api import PlayedApi
from tests.workspaces.play import Play
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db]


class CountingApi(PlayedApi):
    """Simulated API that counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.before_call = self.count

    def count(self) -> None:
        self.calls += 1

    def list(self, kind: str, **options: Any) -> Any:
        raise AssertionError(f"{kind}s were listed: the watch tells of them")


@pytest.fixture
def api() -> CountingApi:
    return CountingApi()


@pytest.fixture
def play(cast: Cast, api: CountingApi) -> Play:
    """A workspace beside another one that is ready: the namespace and the start script are there."""
    play = Play(cast, api)
    play.begin_ready()
    other = Play(cast, api, name="other")
    api.calls = 0
    return other


def calls(api: CountingApi, do: Callable[[], object]) -> int:
    before = api.calls
    do()
    return api.calls - before


@pytest.mark.parametrize("slowly", [True, False], ids=["step by step", "at once"])
def test_a_launch_asks_for_its_objects_and_little_else(play: Play, api: CountingApi, slowly: bool) -> None:
    between = api.step if slowly else api.settle
    made = calls(api, lambda: play.until(lambda row: row.phase == "ready", between=between))
    objects = 4  # PVC, Secret, Service and Pod
    assert made <= objects + 4


def test_the_first_launch_makes_one_start_script_for_all(cast: Cast, api: CountingApi) -> None:
    Play(cast, api).begin_ready()
    Play(cast, api, name="other").begin_ready()
    assert len(api.of("ConfigMap")) == 1


def test_a_stop_deletes_the_pod_and_lets_it_go(play: Play, api: CountingApi) -> None:
    play.begin_ready()
    assert calls(api, play.stop) == 2
    assert len(api.of("Service", "Secret")) == 2 * 2  # the other's, and these stay


def test_a_start_after_a_stop_writes_the_tokens_of_the_run_and_the_pod(play: Play, api: CountingApi) -> None:
    play.begin_ready()
    play.stop()
    lifecycle.start(play.cast.alice, play.row)
    assert calls(api, play.begin_ready) == 3  # Secret, the Service's digest of it, Pod


def test_a_deletion_with_files_makes_a_few(play: Play, api: CountingApi) -> None:
    play.begin_ready()
    lifecycle.delete(play.cast.alice, play.row, delete_disk=True)
    assert calls(api, lambda: play.until(lambda row: row.deleted_at is not None)) <= 6
    assert not [body for body in api.of("Pod", "Service", "Secret") if play.row.object_name == name_of(body)]


def name_of(body: dict[str, Any]) -> str:
    return str(body["metadata"]["name"])


@pytest.mark.slow
def test_a_look_that_hears_of_progress_makes_none(play: Play, api: CountingApi) -> None:
    play.until(lambda _: any(name_of(pod) == play.row.object_name for pod in api.of("Pod")))
    look(play.id, play.mirror)

    def come_up() -> None:
        while api.step():
            look(play.id, play.mirror)

    assert calls(api, come_up) == 0
    assert play.row.phase == "ready"


@pytest.mark.slow
def test_a_look_at_a_ready_run_makes_none_even_if_it_is_asked_to_compare(
    play: Play, api: CountingApi
) -> None:
    play.begin_ready()
    assert calls(api, play.look) == 0
