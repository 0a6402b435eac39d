"""Number of requests that a start makes to the cluster's API and the queue: a hundred starts may come at once."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django_q.models import OrmQ

from clusters.watch.watching import Changed
from tests.cast import Cast
from tests.shared.played_api import PlayedApi
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.play import Play
from workspaces import enqueue, receivers
from workspaces.cluster.look import USUAL
from workspaces.models import Phase, Workspace
from workspaces.runs import reconcile as reconciling

pytestmark = [pytest.mark.django_db]


class CountingApi(PlayedApi):
    """Simulated API that records the listed kinds and counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.listed: list[str] = []
        self.before_call = self.count

    def count(self) -> None:
        self.calls += 1

    def list(self, kind: str, **options: Any) -> Any:
        self.listed.append(kind)
        return super().list(kind, **options)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> CountingApi:
    api = CountingApi()
    monkeypatch.setattr(reconciling, "api_for", lambda cluster: api)
    return api


@pytest.fixture
def play(cast: Cast, api: CountingApi) -> Play:
    return Play(cast, api)


def about(workspace_id: UUID, reason: str) -> Changed:
    event = {"kind": "Event", "metadata": {"name": "e", "uid": "e"}, "reason": reason}
    return Changed("ADDED", {**event, "involvedObject": {"kind": "Pod", "name": f"ws-{workspace_id}-0"}})


def test_the_first_look_makes_everything_and_reads_nothing_twice(play: Play, api: CountingApi) -> None:
    play.begin_ready()  # the namespace is there
    second = Play.__new__(Play)
    second.cast, second.api, second.id = play.cast, api, make_workspace(play.cast, play.cast.bob).pk
    Workspace.objects.filter(pk=second.id).update(phase=Phase.STARTING)
    api.calls = 0
    second.look()
    assert api.of("StatefulSet")[-1]["metadata"]["name"] == second.row.object_name
    assert api.calls <= 13, "a read or two for each kind, and one write for each object"


def test_a_start_without_trouble_reads_no_events(play: Play, api: CountingApi) -> None:
    play.until_phase("ready")
    assert "Event" not in api.listed


@pytest.mark.parametrize("why", ["a trouble was reported", "a step takes long", "the watch had a gap"])
def test_events_are_read_while_something_may_be_wrong(play: Play, api: CountingApi, why: str) -> None:
    play.until(lambda row: bool(api.of("Pod")))
    match why:
        case "a trouble was reported":
            receivers.on_objects_changed(changes=[about(play.id, "FailedMount")])
        case "a step takes long":
            Workspace.objects.update(step_since=play.row.step_since - 2 * USUAL)
        case "the watch had a gap":
            receivers.on_relisted(cluster=play.cast.cluster)
    play.look()
    assert "Event" in api.listed


def test_only_events_about_troubles_enqueue_a_look(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice)
    receivers.on_objects_changed(changes=[about(workspace.pk, "Pulled")])
    assert reconciling.pending_marks(workspace.pk) is None
    receivers.on_objects_changed(changes=[about(workspace.pk, "FailedMount")])
    assert reconciling.pending_marks(workspace.pk) == 1


def test_a_workspace_marked_during_a_look_is_looked_at_once_more(play: Play, api: CountingApi) -> None:
    enqueue.reconcile([play.id])
    OrmQ.objects.all().delete()  # a worker took it
    marked: list[None] = []

    def mark_twice() -> None:
        if not marked:
            marked.append(None)
            enqueue.reconcile([play.id])
            enqueue.reconcile([play.id])

    api.before_call = mark_twice
    reconciling.reconcile(play.id)
    assert OrmQ.objects.count() == 1
    api.before_call = lambda: None
    reconciling.reconcile(play.id)
    assert (OrmQ.objects.count(), reconciling.pending_marks(play.id)) == (1, None)
