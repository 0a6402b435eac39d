"""Metrics for Prometheus: counts from rows, and nobody's name."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.notices.models import Notice
from clusters.errors import ClusterUnavailable
from clusters.models import Gpu, Node
from monitoring.health.rules import is_silent
from monitoring.models import AgentState, Trouble
from quotas import admission, enqueue
from tests.cast import make_cast
from tests.shared.job_rows import end_in_rows, make_job
from tests.shared.parsed import samples
from vitals import figures, pulse
from vitals.models import Figure, Process
from workloads.sizes.sizing import SizeAsked
from workspaces import measures
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Event, Workspace
from workspaces.state.live import changing
from workspaces.state.story import add_event

pytestmark = pytest.mark.django_db


def test_it_counts_what_runs_and_what_waits(client: Client) -> None:
    cast = make_cast()
    for number in range(6):
        size = SizeAsked(flavor="a100-1")
        launch(cast.alice, LaunchSpec(tenant="demo", name=f"secret-{number}", image="jupyter", size=size))
    admission.admit(cast.pool.pk)
    end_in_rows(make_job(cast, cast.bob, "over"))
    make_job(cast, cast.bob, "waits")
    enqueue.admission_pass(cast.pool.pk)
    read = samples(client)
    assert read["berth_workspaces", "starting"] == 4
    assert read["berth_workspaces", "waiting"] == 2
    assert read["berth_workspaces", "deleting"] == 0
    assert ("berth_workspaces", "deleted") not in read
    assert read["berth_jobs", "waiting"] == 1
    assert ("berth_jobs", "succeeded") not in read
    assert read["berth_claims", "a100", "waiting"] == 3
    assert read["berth_gpus_held", "a100"] == 4
    assert read["berth_queue_oldest_seconds", "a100"] >= 0
    assert read["berth_tasks", "waiting"] == 1
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


def test_it_counts_nodes_gpus_agents_and_troubles_and_names_none(client: Client) -> None:
    cluster, now = make_cast().cluster, timezone.now()
    Node.objects.filter(name="gpu-2").update(out_code="kubelet_hidden")
    holder = {"namespace": "demo", "pod": "secret-0", "container": "main"}
    each: list[dict[str, Any]] = [{"held_by": [holder]}, {"out_code": "gpu_xid_hidden"}, {}]
    for index, of_it in enumerate(each):
        Gpu.objects.create(cluster=cluster, node="gpu-1", uuid=f"GPU-{index}", name="A100", **of_it)
    for seconds, interval in ((100, 5), (150, 30), (150, 5), (200, 30)):
        at = now - timedelta(seconds=seconds)
        AgentState.objects.create(
            cluster=cluster,
            node=f"{seconds} {interval}",
            agent="a",
            taken_at=at,
            seen_at=at,
            interval_seconds=interval,
        )
    for code, ended_at in (("gpu_lost", None), ("node_lost", now)):
        Trouble.objects.create(
            cluster=cluster, about="gpu", subject="GPU-1", code=code, since=now, ended_at=ended_at
        )
    pulse.beat("web")
    assert samples(client)["berth_agents", "main", "heard"] == 4  # Berth just started: no agent is silent yet
    Process.objects.update(since=now - timedelta(days=1))
    with CaptureQueriesContext(connection) as queries:
        read = samples(client)
    assert {key[2]: value for key, value in read.items() if key[0] == "berth_nodes"} == {"well": 1, "out": 1}
    gpus = {key[3]: value for key, value in read.items() if key[0] == "berth_gpus"}
    assert gpus == {"held": 1, "out": 1, "free": 1}
    assert (read["berth_agents", "main", "heard"], read["berth_agents", "main", "silent"]) == (2, 2)
    assert sum(is_silent(agent, now) for agent in AgentState.objects.all()) == 2
    assert {key: value for key, value in read.items() if key[0] == "berth_troubles"} == {
        ("berth_troubles", "gpu", "main", "gpu_lost"): 1
    }
    assert sum("gpu" in query["sql"] or "node" in query["sql"] for query in queries) <= 3
    text = client.get("/metrics").content.decode()
    assert not any(word in text for word in ("gpu-1", "gpu-2", "GPU-1", "demo", "secret"))


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
    with changing(workspace.pk) as row:  # a problem in a step does not end the step
        add_event(row, "image_missing", step=row.step, level=Event.Level.WARNING)
    figures.write()
    assert ("berth_step_seconds_count", "disk") not in samples(client)


def test_what_never_happened_is_told_as_zero(client: Client, nothing_counted: None) -> None:
    """Prometheus sees no increase from nothing to one: the first refusal would alert nobody."""
    read = samples(client)
    assert read["berth_intake_reports_total", "refused"] == 0
    assert read["berth_validations_total", "failed"] == 0
    assert read["berth_reconcile_errors_total", "fault"] == 0


def test_it_counts_reports_that_were_refused(client: Client, nothing_counted: None) -> None:
    answer = client.post("/api/v1/agent/samples/", headers={"Authorization": "Bearer bra_unknown"})
    assert answer.status_code == 401
    figures.write()
    assert samples(client)["berth_intake_reports_total", "refused"] == 1


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
