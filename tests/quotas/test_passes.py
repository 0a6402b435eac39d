"""Enqueueing of admission passes: after any change that may let a claim start, one per pool at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from clusters.models import Cluster
from clusters.signals import capacity_changed, tick
from quotas import admission, enqueue, passes, tasks
from quotas.models import Claim, Pool, TenantLimit
from tests.cast import NETWORKS
from tests.crew import on_its_own
from tests.shared.concurrency import at_once, waits_for_me
from tests.shared.stage import Stage, states

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def enqueued(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The slugs of pools for which a pass was enqueued."""
    slugs: list[str] = []
    monkeypatch.setattr(enqueue, "admission_pass", lambda pk: slugs.append(Pool.objects.get(pk=pk).slug))
    return slugs


def test_a_request_enqueues_a_pass_on_commit(stage: Stage, enqueued: list[str]) -> None:
    with transaction.atomic():
        stage.request()
        assert enqueued == []
    assert enqueued == ["a100"]


def test_a_request_that_is_rolled_back_enqueues_no_pass(stage: Stage, enqueued: list[str]) -> None:
    with transaction.atomic():
        stage.request()
        transaction.set_rollback(True)
    assert enqueued == []


def test_many_requests_enqueue_one_pass_until_it_begins(stage: Stage, enqueued: list[str]) -> None:
    claims = [stage.request() for _ in range(3)]
    assert enqueued == ["a100"]
    tasks.admission_pass(str(stage.pool.pk))
    assert states(claims) == ["admitted"] * 3
    stage.request()
    assert enqueued == ["a100", "a100"]


def test_concurrent_requests_enqueue_one_pass(stage: Stage, enqueued: list[str]) -> None:
    at_once(lambda _: stage.request())
    assert enqueued == ["a100"]


def test_a_request_is_covered_by_a_pass_that_still_waits_for_its_lock(
    stage: Stage, enqueued: list[str]
) -> None:
    stage.request()
    with ThreadPoolExecutor(2) as threads:
        with transaction.atomic():
            admission.lock(stage.cast.cluster.pk)
            passing = threads.submit(on_its_own, stage.admit)
            while not waits_for_me():
                assert not passing.done()
            threads.submit(on_its_own, stage.request).result(30)
        assert passing.result(30) == 2
    assert enqueued == ["a100"]


def test_a_request_during_a_pass_enqueues_another(
    stage: Stage, enqueued: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    admit = admission.admit

    def admit_then_somebody_asks(pool_id: UUID) -> int:
        started = admit(pool_id)
        stage.request()  # after the pass read, and before its task is over
        return started

    monkeypatch.setattr(admission, "admit", admit_then_somebody_asks)
    stage.request()
    tasks.admission_pass(str(stage.pool.pk))
    assert enqueued == ["a100", "a100"]


def test_a_new_worker_enqueues_lost_passes_again(stage: Stage, enqueued: list[str]) -> None:
    stage.another_pool("idle")
    stage.request()
    enqueued.clear()
    passes.on_tick()
    assert enqueued == []
    passes.on_worker_began()
    assert enqueued == ["a100"]


def test_a_release_enqueues_passes_where_its_tenant_waits_in_other_clusters(
    stage: Stage, enqueued: list[str]
) -> None:
    far = stage.another_pool("far", cluster=Cluster.objects.create(slug="far", name="Far", **NETWORKS))
    stage.quota(4, pool=far)
    TenantLimit.objects.create(tenant=stage.cast.demo, workspaces=1)
    run = stage.running()
    stage.request(pool=far)
    forget(enqueued)
    admission.release(run.pk, "stopped")
    assert enqueued == ["far"]


def test_a_start_enqueues_a_pass_where_its_tenant_no_longer_blocks_others(
    stage: Stage, enqueued: list[str]
) -> None:
    far = stage.another_pool("far", cluster=Cluster.objects.create(slug="far", name="Far", **NETWORKS))
    stage.node("gpu-far", cluster=far.cluster, labels=far.node_labels)
    for tenant in (stage.cast.demo, stage.cast.second):
        stage.quota(4, tenant=tenant, pool=far)
    TenantLimit.objects.create(tenant=stage.cast.demo, workspaces=1)
    stage.running(2, by=stage.cast.carol, pool=far)
    stage.request(4, pool=far)  # reserves the node
    behind = stage.request(1, by=stage.cast.carol, pool=far)
    assert stage.admit(far) == 0
    forget(enqueued)
    stage.running(1)  # now the other waits for its tenant's limit
    assert "far" in enqueued
    assert stage.admit(far) == 1
    assert states([behind]) == ["admitted"]


@pytest.mark.parametrize(
    "change",
    [
        lambda run: admission.release(run.pk, "stopped"),
        lambda run: admission.flag_unproven_end(run.pk),
        lambda run: admission.move_end(run.pk, timezone.now()),
        admission.renew,
    ],
)
def test_an_end_or_a_moved_end_enqueues_passes_for_the_clusters_pools_with_a_queue(
    stage: Stage, enqueued: list[str], change: Callable[[Claim], object]
) -> None:
    also, _idle = stage.another_pool("also-a100"), stage.another_pool("idle")
    stage.quota(4, pool=also)
    run = stage.running(4)
    for pool in (stage.pool, also):
        stage.request(4, pool=pool)
    forget(enqueued)
    change(run)
    assert sorted(enqueued) == ["a100", "also-a100"]


def test_a_restart_after_an_unproven_end_lets_shorter_requests_start(
    stage: Stage, enqueued: list[str]
) -> None:
    stage.quota(8)
    run = stage.running(3, max_runtime_minutes=240)
    stage.running(4, by=stage.cast.carol)
    admission.flag_unproven_end(run.pk)
    stage.request(4)  # its start is unknown: it reserves the node
    short = stage.request(1, max_runtime_minutes=30)
    assert stage.admit() == 0
    forget(enqueued)
    admission.renew(run)
    assert enqueued == ["a100"]
    assert stage.admit() == 1
    assert states([short]) == ["admitted"]


def test_changed_capacity_and_ticks_enqueue_passes_for_pools_with_a_queue(
    stage: Stage, enqueued: list[str]
) -> None:
    capacity_changed.send(sender=None, cluster=stage.cast.cluster)
    tick.send(sender=None)
    assert enqueued == []
    stage.request()
    forget(enqueued)
    capacity_changed.send(sender=None, cluster=stage.cast.cluster)
    assert enqueued == ["a100"]
    forget(enqueued)
    tick.send(sender=None)
    assert enqueued == ["a100"]


def test_changed_capacity_of_another_cluster_enqueues_nothing(stage: Stage, enqueued: list[str]) -> None:
    stage.request()
    forget(enqueued)
    capacity_changed.send(sender=None, cluster=Cluster.objects.create(slug="other", name="Other", **NETWORKS))
    assert enqueued == []


def test_a_pass_lost_with_its_worker_is_enqueued_again(stage: Stage, enqueued: list[str]) -> None:
    stage.request()
    tick.send(sender=None)
    assert enqueued == ["a100"]
    Pool.objects.update(pass_queued_at=timezone.now() - timedelta(seconds=11))
    tick.send(sender=None)
    assert enqueued == ["a100", "a100"]


def test_a_pass_is_enqueued_again_after_the_clock_was_set_back(stage: Stage, enqueued: list[str]) -> None:
    stage.request()
    Pool.objects.update(pass_queued_at=timezone.now() + timedelta(hours=1))
    tick.send(sender=None)
    assert enqueued == ["a100", "a100"]


def test_a_failing_task_queue_does_not_undo_the_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(pool_id: UUID) -> Any:
        raise ConnectionError(pool_id)

    monkeypatch.setattr(enqueue, "admission_pass", away)
    assert states([stage.request()]) == ["waiting"]
    assert Pool.objects.get().pass_queued_at is None  # so the next tick enqueues it


def test_the_pass_is_a_task_of_the_worker(stage: Stage) -> None:
    from django_q.models import OrmQ

    stage.request()
    [queued] = OrmQ.objects.all()
    task = json.loads(queued.payload)
    assert (task["func"], task["args"]) == ("quotas.tasks.admission_pass", [str(stage.pool.pk)])


def forget(enqueued: list[str]) -> None:
    Pool.objects.update(pass_queued_at=None)
    enqueued.clear()
