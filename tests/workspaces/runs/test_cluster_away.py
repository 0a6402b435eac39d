"""Behaviour while a cluster does not answer: nobody calls it, pages say so, and all goes on when it is back."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster
from tests.shared.looking import look
from tests.workspaces.play import Play
from workspaces import receivers
from workspaces.api.representation import message
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db]

AWAY = "The cluster does not answer at the moment."


def goes_away() -> None:
    Cluster.objects.update(unreachable_since=timezone.now(), unreachable_reason="no answer in time")


def comes_back() -> None:
    Cluster.objects.update(unreachable_since=None, unreachable_reason="")


def test_nobody_calls_the_cluster_and_the_request_is_kept(play: Play) -> None:
    play.begin_ready()
    goes_away()
    play.fail_calls(AssertionError("it was called"))
    lifecycle.stop(play.cast.alice, play.row)
    play.look()
    assert (play.row.phase, play.row.message_code) == ("stopping", "cluster_unavailable")
    play.answer_calls()
    comes_back()
    play.until_phase("stopped")


def test_marks_wait_and_are_answered_when_it_is_back(play: Play) -> None:
    goes_away()
    play.fail_calls(AssertionError("it was called"))
    play.look()
    assert play.row.dirty_since is not None
    comes_back()
    play.answer_calls()
    look(play.id, play.mirror)
    assert play.row.dirty_since is None


def test_pages_of_its_workspaces_are_woken_by_one_statement(play: Play) -> None:
    play.begin_ready()
    with CaptureQueriesContext(connection) as queries:
        receivers.on_reachability_changed(cluster=play.row.pool.cluster)
    [woken] = [query["sql"] for query in queries.captured_queries if "pg_notify" in query["sql"]]
    for group in ("workspaces.staff", f"workspaces.{play.row.tenant_id}", f"workspace.{play.id}"):
        assert group in woken


def test_the_page_says_so_for_a_run_and_not_for_a_stopped_workspace(play: Play, client: Client) -> None:
    client.force_login(play.cast.alice.user)
    play.begin_ready()
    assert AWAY not in client.get(f"/workspaces/{play.id}/").content.decode()
    goes_away()
    assert AWAY in client.get(f"/workspaces/{play.id}/").content.decode()
    comes_back()
    play.stop()
    goes_away()
    assert message(play.row).startswith("Stopped.")
