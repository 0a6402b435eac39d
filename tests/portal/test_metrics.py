"""What Prometheus reads: counts from rows, and nobody's name."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from accounts.notices.models import Notice
from clusters.errors import ClusterUnavailable
from quotas import admission
from tests.cast import make_cast
from vitals import figures
from vitals.models import Figure, Process
from workspaces import measures
from workspaces.launch import LaunchSpec, launch
from workspaces.live import changing
from workspaces.models import Event, Workspace
from workspaces.sizing import SizeAsked
from workspaces.story import tell

pytestmark = pytest.mark.django_db


def samples(client: Client) -> dict[tuple[str, ...], float]:
    """(metric, label values …) to value."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_it_counts_what_runs_and_what_waits(client: Client) -> None:
    cast = make_cast()
    for number in range(6):
        size = SizeAsked(flavor="a100-1")
        launch(cast.alice, LaunchSpec(tenant="demo", name=f"secret-{number}", image="jupyter", size=size))
    admission.admit(cast.pool.pk)
    read = samples(client)
    assert read["berth_workspaces", "starting"] == 4
    assert read["berth_workspaces", "waiting"] == 2
    assert read["berth_claims", "a100", "waiting"] == 2
    assert read["berth_gpus_held", "a100"] == 4
    assert read["berth_queue_oldest_seconds", "a100"] >= 0
    assert read["berth_tasks", "waiting"] > 0
    assert read["berth_tasks", "taken"] == 0
    assert read["berth_tasks_oldest_seconds",] >= 0
    text = client.get("/metrics").content.decode()
    assert not any(word in text for word in ("alice", "demo", "secret"))


def test_it_counts_mails_that_wait_and_that_were_given_up(client: Client) -> None:
    bob = make_cast().bob.user
    for key, state, due in (
        ("a", "waiting", timezone.now()),
        ("b", "given_up", None),
        ("c", "given_up", None),
    ):
        Notice.objects.create(
            user=bob, key=key, kind="ready", subject_id=bob.pk, in_berth=True, mail=state, mail_due_at=due
        )
    read = samples(client)
    assert (read["berth_mails", "waiting"], read["berth_mails", "given_up"]) == (1, 2)


@pytest.fixture
def nothing_counted() -> None:
    figures._tally.begin_anew()


def test_it_tells_how_long_each_step_took_once_that_is_committed(
    client: Client, nothing_counted: None, django_capture_on_commit_callbacks: Any
) -> None:
    cast = make_cast()
    with django_capture_on_commit_callbacks(execute=True):
        size = SizeAsked(flavor="a100-1")
        workspace = launch(cast.alice, LaunchSpec(tenant="demo", name="one", image="jupyter", size=size))
        Workspace.objects.update(step_since=timezone.now() - timedelta(seconds=7))
        admission.admit(cast.pool.pk)
        figures.write()
        assert ("berth_step_seconds_count", "admission") not in samples(client)
    figures.write()
    read = samples(client)
    assert read["berth_step_seconds_count", "admission"] == 1
    assert 7 <= read["berth_step_seconds_sum", "admission"] < 60
    assert read["berth_step_seconds_bucket", "5", "admission"] == 0
    assert read["berth_step_seconds_bucket", "+Inf", "admission"] == 1
    with changing(workspace.pk) as row:  # what goes wrong in a step is not its end
        tell(row, "image_missing", step=row.step, level=Event.Level.WARNING)
    figures.write()
    assert ("berth_step_seconds_count", "disk") not in samples(client)


def test_it_tells_how_long_looks_took_and_what_ended_them(client: Client, nothing_counted: None) -> None:
    with measures.one_look():
        pass
    with suppress(ClusterUnavailable), measures.one_look():
        raise ClusterUnavailable("away")
    figures.write()
    read = samples(client)
    assert read["berth_reconcile_seconds_count",] == 2
    assert read["berth_reconcile_errors_total", "cluster away"] == 1


def test_buckets_of_another_version_are_still_summed_in_order(client: Client, nothing_counted: None) -> None:
    for bound, fell in (("0.07", 2), ("0.1", 3)):
        labels = json.dumps({"le": bound})
        Figure.objects.create(name="berth_start_seconds_bucket", labels=labels, value=fell)
    Figure.objects.create(name="berth_start_seconds_sum", labels="{}", value=1)
    read = samples(client)
    buckets = [(k[1], v) for k, v in read.items() if k[0] == "berth_start_seconds_bucket"]
    assert buckets[:4] == [("0.05", 0), ("0.07", 2), ("0.1", 5), ("0.25", 5)]
    assert read["berth_start_seconds_count",] == 5


def test_it_sums_what_processes_have_open_and_leaves_out_who_is_silent(client: Client) -> None:
    for host, seconds_ago, sockets in (("a", 1, 3), ("b", 10, 4), ("c", 60, 100)):
        seen_at = Now() - timedelta(seconds=seconds_ago)
        gauges = {"berth_sockets": sockets}
        Process.objects.create(part="web", host=host, pid=1, seen_at=seen_at, gauges=gauges)
    read = samples(client)
    assert read["berth_processes", "web"] == 2
    assert read["berth_processes", "worker"] == 0
    assert read["berth_sockets",] == 7
