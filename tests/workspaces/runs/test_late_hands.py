"""Late actions of an earlier look: they change nothing of what is there by now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from clusters.errors import ClusterRefused
from clusters.mirror import Mirror
from tests.workspaces.play import Play
from workspaces.cluster.look import look_at
from workspaces.cluster.manifests import FINALIZER
from workspaces.cluster.proof import delete_pod, remove_finalizer
from workspaces.cluster.repair import restore_finalizer
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db]


def start_anew(play: Play) -> None:
    play.stop()
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")


def test_a_late_deletion_spares_the_pod_of_the_next_run(play: Play) -> None:
    play.begin_ready()
    [earlier] = look_at(play.row, play.mirror).pods
    start_anew(play)
    delete_pod(earlier, play.mirror)
    assert "deletionTimestamp" not in play.pod()["metadata"]


@pytest.mark.parametrize(("change", "finalizers"), [(remove_finalizer, [FINALIZER]), (restore_finalizer, [])])
def test_a_late_change_of_finalizers_spares_the_next_pod(
    play: Play, change: Callable[[Any, Mirror], None], finalizers: list[str]
) -> None:
    play.begin_ready()
    [earlier] = look_at(play.row, play.mirror).pods
    cast(Any, earlier)["metadata"]["finalizers"] = finalizers
    start_anew(play)
    play.pod()["metadata"]["finalizers"] = ["example.com/others"]
    with pytest.raises(ClusterRefused):
        change(earlier, play.mirror)
    assert play.pod()["metadata"]["finalizers"] == ["example.com/others"]


def test_a_stop_during_the_look_that_sees_it_ready_wins(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop_then_answer(*of: Any, **options: Any) -> Any:
        monkeypatch.undo()
        lifecycle.stop(play.cast.alice, play.row)
        return play.mirror.of(*of, **options)

    play.until(lambda _: any(pod["status"]["phase"] == "Running" for pod in play.api.of("Pod")))
    play.api.settle()
    monkeypatch.setattr(play.mirror, "of", stop_then_answer)
    assert play.look().phase == "stopping"
    assert play.told("ready") == 0
    play.until_phase("stopped")
