"""Looks in the process that watches: what reaches the lanes, and whole runs with nobody else at work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from clusters.api import Api
from clusters.labels import WORKSPACE
from clusters.mirror import Mirror
from clusters.models import Cluster
from clusters.watch.fleet import Fleet
from devcluster.testing.waiting import until
from quotas import admission
from tests.cast import Cast
from tests.shared.driving import launched
from workspaces import enqueue
from workspaces.models import Phase, Workspace
from workspaces.runs import lifecycle
from workspaces.runs.reconciler import Reconciler

ID = UUID("00000000-0000-4000-8000-00000000000a")
Body = dict[str, Any]


def pod(**status: Any) -> Body:
    return {"kind": "Pod", "metadata": {"name": f"ws-{ID}", "labels": {WORKSPACE: str(ID)}}, "status": status}


def event(reason: str, name: str = f"ws-{ID}") -> Body:
    about = {"kind": "Pod", "name": name}
    return {"kind": "Event", "metadata": {"name": "e"}, "reason": reason, "involvedObject": about}


class TestWhatReachesTheLanes:
    @pytest.fixture
    def reconciler(self) -> Reconciler:
        return Reconciler(Cluster(slug="any"), Mirror(lambda: None))  # type: ignore[arg-type,return-value]

    def look(self, reconciler: Reconciler) -> list[UUID]:
        taken = reconciler.lanes.take(1, timeout_seconds=0)
        reconciler.lanes.done(taken)
        return taken

    @pytest.mark.parametrize(
        ("body", "looked_at"),
        [
            (pod(phase="Pending"), [ID]),
            ({**pod(phase="Pending"), "metadata": {"name": f"ws-{ID}", "labels": None}}, [ID]),
            (event("FailedMount"), [ID]),
            (event("FailedMount", f"ws-{ID}-0"), [ID]),
            (event("Pulled"), []),
            (event("FailedMount", "another-pod"), []),
            ({"kind": "ConfigMap", "metadata": {"name": "berth-start-1"}}, []),
            ({"kind": "Service", "metadata": {"name": "s", "labels": {WORKSPACE: "no id"}}}, []),
        ],
    )
    def test_changes_of_workspaces_and_their_troubles_do(
        self, reconciler: Reconciler, body: Body, looked_at: list[UUID]
    ) -> None:
        reconciler.changed("MODIFIED", body)
        assert self.look(reconciler) == looked_at

    def test_noise_waits_for_its_pause_and_an_end_does_not(self, reconciler: Reconciler) -> None:
        reconciler.changed("MODIFIED", pod(phase="Running"))
        assert self.look(reconciler) == [ID]
        reconciler.changed("MODIFIED", pod(phase="Running", restarts=1))
        reconciler.changed("ADDED", event("FailedMount"))
        assert self.look(reconciler) == []
        reconciler.changed("MODIFIED", pod(phase="Failed"))
        assert self.look(reconciler) == [ID]
        reconciler.changed("DELETED", pod(phase="Failed"))
        assert self.look(reconciler) == [ID]

    def test_what_a_person_waits_for_is_followed_from_the_first_look_on(self, reconciler: Reconciler) -> None:
        reconciler._heard(ID, urgent=True)
        taken = reconciler.lanes.take(1, timeout_seconds=0)
        reconciler.changed("MODIFIED", pod(phase="Pending"))  # the cluster answers while the look goes on
        reconciler.lanes.done(taken)
        assert self.look(reconciler) == [ID]

    def test_the_progress_of_a_start_does_not_wait(self, reconciler: Reconciler) -> None:
        starting = Workspace(pk=ID, phase=Phase.STARTING)
        for _ in range(3):
            reconciler._note(starting, is_done=True)
            reconciler.changed("MODIFIED", pod(phase="Pending"))
            assert self.look(reconciler) == [ID]
        starting.troubles = {"image_missing": ""}
        reconciler._note(starting, is_done=True)
        reconciler.changed("MODIFIED", pod(phase="Pending"))
        assert self.look(reconciler) == []


@contextmanager
def watching() -> Iterator[None]:
    """Watch all clusters in this process, as `manage.py watch` does."""
    fleet, stopped = Fleet(), threading.Event()

    def lead() -> None:
        while not stopped.is_set():
            fleet.step()
        fleet.stop()
        connections.close_all()

    thread = threading.Thread(target=lead)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(60)
        until(lambda: not [one for one in threading.enumerate() if one.name.startswith("main/")])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_whole_life_without_any_task(house: Cast, api: Api) -> None:
    workspace = launched(house, disk_mib=64)
    namespace = house.demo.namespace

    def comes_to(phase: Phase) -> None:
        until(lambda: Workspace.objects.filter(pk=workspace.pk, phase=phase, ending="").exists(), 60)

    with watching():
        admission.admit(house.pool.pk)
        comes_to(Phase.READY)
        until(lambda: not Workspace.objects.filter(dirty_since__isnull=False).exists())
        lifecycle.stop(house.alice, workspace)
        comes_to(Phase.STOPPED)
        assert [body["metadata"]["name"] for body in api.list("Service", namespace=namespace)] == [
            workspace.object_name
        ]
        workspace.refresh_from_db()
        lifecycle.start(house.alice, workspace)
        admission.admit(house.pool.pk)
        comes_to(Phase.READY)
        workspace.refresh_from_db()
        lifecycle.delete(house.alice, workspace, delete_disk=True)
        comes_to(Phase.DELETED)
        until(lambda: len(api.list("PersistentVolumeClaim", namespace=namespace)) == 1, 60)  # the home
    for kind in ("Pod", "Service", "Secret"):
        assert api.list(kind, namespace=namespace) == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_process_that_begins_looks_at_what_the_last_one_left(house: Cast, api: Api) -> None:
    workspace = launched(house)
    admission.admit(house.pool.pk)
    enqueue.reconcile([workspace.pk])  # nobody hears it
    with watching():
        until(lambda: Workspace.objects.filter(pk=workspace.pk, phase=Phase.READY).exists(), 60)
