"""Marks: a workspace that may have changed is looked at again, whatever happens at the same time."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from django_q.models import OrmQ

from portal.task_broker import began
from tests.cast import Cast
from tests.shared.concurrency import elsewhere
from tests.shared.workspace_rows import make_workspace
from workspaces import enqueue
from workspaces.models import Phase, Workspace
from workspaces.runs import reconcile as reconciling

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_a_mark_that_comes_while_the_last_look_is_written_down_is_not_lost(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice)
    Workspace.objects.update(dirty_since="2026-01-01T00:00:00Z", dirty_marks=1)
    threads: list[threading.Thread] = []

    def settle_after_the_first_statement(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        if "FOR NO KEY UPDATE" in sql and not threads:
            threads.append(elsewhere(lambda: reconciling.settle(workspace.pk, 1)))
            threads[0].join(0.3)
        return answer

    with connection.execute_wrapper(settle_after_the_first_statement):
        enqueue.reconcile([workspace.pk])
    threads[0].join()
    assert reconciling.pending_marks(workspace.pk) == 2


@pytest.mark.parametrize(("marked_ago", "again"), [(5, False), (16, True), (-3600, True)])
def test_a_mark_that_nobody_answers_is_queued_again_even_if_the_clock_was_set_back_since(
    cast: Cast, marked_ago: int, again: bool
) -> None:
    make_workspace(cast, cast.alice)
    marked_at = timezone.now() - timedelta(seconds=marked_ago)
    Workspace.objects.update(dirty_since=marked_at, dirty_marks=1)
    enqueue.periodic_pass(0)
    assert (Workspace.objects.get().dirty_since != marked_at) is again


def test_a_worker_that_begins_looks_at_once_at_what_the_last_one_died_with(cast: Cast) -> None:
    marked = make_workspace(cast, cast.alice, name="marked")
    make_workspace(cast, cast.alice, name="quiet")
    Workspace.objects.filter(pk=marked.pk).update(dirty_since=timezone.now(), dirty_marks=1)
    began.send(sender=None)
    looks = [
        queued.task for queued in OrmQ.objects.all() if queued.task["func"] == "workspaces.tasks.reconcile"
    ]
    assert [look["args"] for look in looks] == [(str(marked.pk),)]


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


def test_who_finds_it_busy_leaves_it_alone(cast: Cast) -> None:
    """Otherwise a slow look, which is enqueued again and again, would never end."""
    workspace = make_workspace(cast, cast.alice)
    enqueue.reconcile([workspace.pk])
    with reconciling.alone(workspace.pk):
        elsewhere(lambda: reconciling.reconcile(workspace.pk)).join()
    assert reconciling.pending_marks(workspace.pk) == 1


def test_what_runs_on_a_cluster_is_looked_at_when_an_admin_changes_its_settings(cast: Cast) -> None:
    runs, rests = make_workspace(cast, cast.alice), make_workspace(cast, cast.bob, Phase.STOPPED)
    cast.cluster.exposure = cast.cluster.Exposure.NODE_PORT
    cast.cluster.save()
    marked = Workspace.objects.filter(dirty_since__isnull=False).values_list("pk", flat=True)
    assert (list(marked), rests.dirty_since) == ([runs.pk], None)
