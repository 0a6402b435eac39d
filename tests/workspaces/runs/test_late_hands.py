"""Late actions of an earlier look: they change nothing of what is there by now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from clusters.api import Api
from clusters.errors import ClusterRefused
from tests.workspaces.play import Play
from workspaces.cluster.look import look_at
from workspaces.cluster.manifests import FINALIZER
from workspaces.cluster.proof import remove_finalizer
from workspaces.cluster.repair import restore_finalizer
from workspaces.runs import lifecycle
from workspaces.runs.take_down import delete_controller

pytestmark = [pytest.mark.django_db]


def api_of(play: Play) -> Api:
    return cast(Api, play.api)


def start_anew(play: Play) -> None:
    play.stop()
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")


@pytest.mark.parametrize("without", [{}, {"stateful_set": None}], ids=["with its set", "without its set"])
def test_a_late_deletion_spares_the_objects_of_the_next_run(play: Play, without: dict[str, Any]) -> None:
    earlier = play.begin_ready()
    seen = replace(look_at(earlier, api_of(play)), **without)
    start_anew(play)
    delete_controller(earlier, seen, api_of(play))
    for body in play.api.of("StatefulSet", "Pod"):
        assert "deletionTimestamp" not in body["metadata"]


@pytest.mark.parametrize(("change", "finalizers"), [(remove_finalizer, [FINALIZER]), (restore_finalizer, [])])
def test_a_late_change_of_finalizers_spares_the_next_pod(
    play: Play, change: Callable[[Any, Api], None], finalizers: list[str]
) -> None:
    play.begin_ready()
    [earlier] = look_at(play.row, api_of(play)).pods
    cast(Any, earlier)["metadata"]["finalizers"] = finalizers
    start_anew(play)
    play.pod()["metadata"]["finalizers"] = ["example.com/others"]
    with pytest.raises(ClusterRefused):
        change(earlier, api_of(play))
    assert play.pod()["metadata"]["finalizers"] == ["example.com/others"]


def test_a_stop_during_the_look_that_sees_it_ready_wins(play: Play) -> None:
    def stop_at_the_first_call() -> None:
        play.answer_calls()
        lifecycle.stop(play.cast.alice, play.row)

    play.until(lambda _: any(pod["status"]["phase"] == "Running" for pod in play.api.of("Pod")))
    while play.api.step():
        pass
    play.api.before_call = stop_at_the_first_call
    assert play.look().phase == "stopping"
    assert play.told("ready") == 0
    play.until_phase("stopped")
