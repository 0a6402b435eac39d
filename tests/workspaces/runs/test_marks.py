"""Marks: a workspace that may have changed is looked at again, whatever happens at the same time."""

from __future__ import annotations

import threading

import pytest
from django.db import transaction

from clusters.watch.working import listening
from tests.cast import Cast
from tests.shared.concurrency import elsewhere
from tests.shared.workspace_rows import make_workspace
from workspaces import enqueue
from workspaces.models import Phase, Workspace
from workspaces.runs import reconcile as reconciling

pytestmark = [pytest.mark.django_db(transaction=True)]


def marked() -> list[object]:
    return list(Workspace.objects.filter(dirty_since__isnull=False).values_list("pk", flat=True))


def test_a_look_clears_the_marks_that_came_before_it(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice)
    enqueue.reconcile([workspace.pk])
    enqueue.reconcile([workspace.pk])
    workspace.refresh_from_db()
    assert (workspace.dirty_marks, marked()) == (2, [workspace.pk])
    reconciling.settle(workspace)
    assert marked() == []


def test_a_mark_that_comes_while_a_look_is_settled_is_not_lost(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice)
    enqueue.reconcile([workspace.pk])
    workspace.refresh_from_db()
    with transaction.atomic():
        enqueue.reconcile([workspace.pk])
        settling = elsewhere(lambda: reconciling.settle(workspace))
        settling.join(0.3)
    settling.join()
    assert marked() == [workspace.pk]


def test_a_mark_is_heard_when_its_transaction_commits(cast: Cast) -> None:
    first, second = (make_workspace(cast, cast.alice, name=name) for name in ("a", "b"))
    with listening(enqueue.CHANNEL) as heard:
        with transaction.atomic():
            enqueue.reconcile([first.pk, second.pk])
            enqueue.reconcile([first.pk], urgent=True)
            assert list(heard.notifies(timeout=0.1)) == []
        told = {notice.payload for notice in heard.notifies(timeout=10, stop_after=3)}
    cluster = cast.cluster.pk
    assert told == {f"{cluster} 0 {first.pk}", f"{cluster} 0 {second.pk}", f"{cluster} 1 {first.pk}"}


def test_many_are_marked_in_one_order_so_that_two_who_mark_never_deadlock(cast: Cast) -> None:
    first, second = sorted(make_workspace(cast, cast.alice, name=name).pk for name in ("a", "b"))
    Workspace.objects.update(dirty_since="2026-01-01T00:00:00Z")
    taken: list[threading.Thread] = []

    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=first)
        taken.append(elsewhere(lambda: enqueue.reconcile([second, first])))
        taken[0].join(0.3)
        # The thread waits for the first row, so it cannot hold the second yet.
        Workspace.objects.select_for_update(nowait=True).get(pk=second)
    taken[0].join()
    assert set(Workspace.objects.values_list("dirty_marks", flat=True)) == {1}


def test_what_runs_on_a_cluster_is_looked_at_when_an_admin_changes_its_settings(cast: Cast) -> None:
    runs, rests = make_workspace(cast, cast.alice), make_workspace(cast, cast.bob, Phase.STOPPED)
    cast.cluster.exposure = cast.cluster.Exposure.NODE_PORT
    cast.cluster.save()
    assert (marked(), rests.dirty_since) == ([runs.pk], None)
