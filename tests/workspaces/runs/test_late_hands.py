"""Late actions of an earlier look: they change nothing of what is there by now."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from clusters.api import Api
from clusters.errors import ClusterRefused
from tests.workspaces.play import Play
from workspaces.cluster.look import look_at
from workspaces.cluster.proof import remove_finalizer
from workspaces.cluster.repair import restore_finalizer
from workspaces.runs import lifecycle
from workspaces.runs.take_down import delete_controller

pytestmark = [pytest.mark.django_db]


def api_of(play: Play) -> Api:
    return cast(Api, play.api)


def start_anew(play: Play) -> None:
    lifecycle.stop(play.cast.alice, play.row)
    play.until_phase("stopped")
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")


def test_a_set_is_deleted_only_if_it_is_the_one_that_was_seen(play: Play) -> None:
    earlier = play.begin_ready()
    seen = look_at(earlier, api_of(play))
    start_anew(play)
    delete_controller(earlier, seen, api_of(play))
    assert "deletionTimestamp" not in play.api.of("StatefulSet")[0]["metadata"]


def test_a_pod_without_its_set_is_deleted_only_if_it_is_the_one_that_was_seen(play: Play) -> None:
    earlier = play.begin_ready()
    seen = replace(look_at(earlier, api_of(play)), stateful_set=None)
    start_anew(play)
    delete_controller(earlier, seen, api_of(play))
    assert "deletionTimestamp" not in play.pod()["metadata"]


def test_a_finalizer_of_somebody_else_is_never_taken_off(play: Play) -> None:
    play.begin_ready()
    [earlier] = look_at(play.row, api_of(play)).pods
    start_anew(play)
    play.pod()["metadata"]["finalizers"] = ["example.com/others"]
    with pytest.raises(ClusterRefused):
        remove_finalizer(earlier, api_of(play))
    assert play.pod()["metadata"]["finalizers"] == ["example.com/others"]


def test_a_finalizer_is_put_on_no_other_pod_of_the_same_name(play: Play) -> None:
    play.begin_ready()
    [earlier] = look_at(play.row, api_of(play)).pods
    earlier["metadata"]["finalizers"] = []
    start_anew(play)
    play.pod()["metadata"]["finalizers"] = ["example.com/others"]
    with pytest.raises(ClusterRefused):
        restore_finalizer(earlier, api_of(play))
    assert play.pod()["metadata"]["finalizers"] == ["example.com/others"]


def test_who_stops_it_while_it_is_seen_to_be_ready_has_it_stopping(play: Play) -> None:
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
