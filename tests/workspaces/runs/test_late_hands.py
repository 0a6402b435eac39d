"""Late actions of an earlier look: they change nothing of what is there by now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from clusters.errors import ClusterRefused
from clusters.mirror import Mirror
from clusters.pods.ends import FINALIZER, remove_finalizer
from tests.workspaces.play import Play
from workspaces.cluster.look import look_at
from workspaces.cluster.proof import delete_pod
from workspaces.cluster.repair import restore_finalizer
from workspaces.models import Workspace
from workspaces.runs import lifecycle
from workspaces.runs.take_down import delete_ways_in

pytestmark = [pytest.mark.django_db]


def start_anew(play: Play) -> None:
    play.stop()
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")


def test_a_late_deletion_spares_the_pod_of_the_next_run_which_has_the_same_name(play: Play) -> None:
    play.begin_ready()
    [earlier] = look_at(play.row, (), play.mirror).pods
    start_anew(play)
    assert play.pod()["metadata"]["name"] == earlier["metadata"]["name"]
    assert not delete_pod(earlier, play.mirror)
    assert "deletionTimestamp" not in play.pod()["metadata"]
    assert play.look().phase == "ready"


def test_a_late_end_of_the_workspace_spares_the_next_ones_service(play: Play) -> None:
    earlier = play.begin_ready()
    service = play.api.of("Service")[0]
    play.mirror.get = lambda *_: service  # type: ignore[method-assign]
    gone = play.api.objects.pop(("Service", service["metadata"]["namespace"], service["metadata"]["name"]))
    play.api.put({**gone, "metadata": {**gone["metadata"], "uid": "of-the-next"}})
    delete_ways_in(earlier, play.mirror)
    assert [body["metadata"]["uid"] for body in play.api.of("Service")] == ["of-the-next"]


def test_a_late_creation_meets_the_name_of_the_pod_that_is_there(play: Play) -> None:
    """The mirror of a process that lost the lead, and looks once more at a start: it has not heard of the pod."""
    play.until(lambda _: bool(play.api.of("Pod")))
    there = play.pod()["metadata"]["uid"]
    row = play.row
    Workspace.objects.filter(pk=play.id).update(pod_uid="", pod_ended=True)
    of = play.mirror.of
    play.mirror.of = lambda kind, *a, **k: [] if kind == "Pod" else of(kind, *a, **k)  # type: ignore[method-assign]
    play.look()
    play.look()
    assert [pod["metadata"]["uid"] for pod in play.api.of("Pod")] == [there]
    assert (play.row.run, play.row.pod_uid, play.row.pod_ended) == (row.run, there, False)
    del play.mirror.of
    play.until_phase("ready")


@pytest.mark.parametrize(("change", "finalizers"), [(remove_finalizer, [FINALIZER]), (restore_finalizer, [])])
def test_a_late_change_of_finalizers_spares_the_next_pod(
    play: Play, change: Callable[[Any, Mirror], None], finalizers: list[str]
) -> None:
    play.begin_ready()
    [earlier] = look_at(play.row, (), play.mirror).pods
    cast(Any, earlier)["metadata"]["finalizers"] = finalizers
    start_anew(play)
    play.pod()["metadata"]["finalizers"] = ["example.com/others"]
    with pytest.raises(ClusterRefused):
        change(earlier, play.mirror)
    assert play.pod()["metadata"]["finalizers"] == ["example.com/others"]


def test_a_stop_during_the_look_that_sees_it_ready_wins(play: Play) -> None:
    def stop_at_the_first_read(*name: Any) -> Any:
        del play.mirror.get
        lifecycle.stop(play.cast.alice, play.row)
        return play.mirror.get(*name)

    play.until(lambda _: any(pod["status"]["phase"] == "Running" for pod in play.api.of("Pod")))
    while play.api.step():
        pass
    play.mirror.get = stop_at_the_first_read  # type: ignore[method-assign,assignment]
    assert play.look().phase == "stopping"
    assert play.told("ready") == 0
    play.until_phase("stopped")
