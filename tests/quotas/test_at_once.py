"""Several processes at once on one PostgreSQL: nothing is given twice, nothing ends twice."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.db.models import Sum

from accounts.errors import Conflict
from clusters.models import Cluster, Node
from devcluster.testing.waiting import until
from quotas import admission
from quotas.models import Claim, TenantLimit
from quotas.pools import opening
from quotas.scheduling import decide
from quotas.signals import claim_admitted, claim_released
from tests.cast import NETWORKS
from tests.shared.concurrency import THREADS, at_once, elsewhere, waits_for_me
from tests.shared.stage import Stage, admitted_units, states

pytestmark = pytest.mark.django_db(transaction=True)


def held_by(*columns: str) -> dict[Any, int]:
    """Units by columns, as one snapshot sees them."""
    admitted = Claim.objects.filter(state=Claim.State.ADMITTED).order_by()
    return {tuple(of): units for *of, units in admitted.values_list(*columns).annotate(Sum("units"))}


def test_whatever_runs_at_once_no_quota_and_no_node_is_exceeded(stage: Stage) -> None:
    also = stage.another_pool("also-a100")
    demo, second = stage.cast.demo, stage.cast.second
    quotas = {(demo.pk, stage.pool.pk): 5, (second.pk, stage.pool.pk): 6, (demo.pk, also.pk): 3}
    stage.quota(5)
    stage.quota(6, tenant=second)
    stage.quota(3, pool=also)

    def live(number: int) -> None:
        chance = random.Random(number)
        for _ in range(2):
            by = chance.choice([stage.cast.alice, stage.cast.carol])
            pool = also if by == stage.cast.alice and chance.random() < 0.3 else stage.pool
            with transaction.atomic():
                admission.lock(pool.cluster_id)
                claim = stage.request(chance.randint(1, 3), by=by, pool=pool)
            admission.admit(pool.id)
            assert all(units <= 4 for units in held_by("node").values())
            assert all(units <= quotas[of] for of, units in held_by("tenant", "pool").items())
            if chance.random() < 0.5:
                admission.release(claim.pk, "stopped")

    at_once(live)
    for pool in (stage.pool, also):
        stage.admit(pool)
        assert stage.admit(pool) == 0


def test_passes_over_pools_that_share_nodes_give_no_unit_twice(stage: Stage) -> None:
    pools = [stage.another_pool(f"pool-{number}") for number in range(THREADS)]
    for pool in pools:
        stage.quota(8, pool=pool)
        for _ in range(2):
            stage.request(1, pool=pool)
    at_once(lambda number: admission.admit(pools[number].pk))
    assert held_by("node") == {("gpu-1",): 4, ("gpu-2",): 4}


def test_passes_in_two_clusters_keep_a_tenants_limit(stage: Stage) -> None:
    TenantLimit.objects.create(tenant=stage.cast.demo, cpu_millicores=3000)
    pools = []
    for number in range(THREADS):
        cluster = Cluster.objects.create(slug=f"c{number}", name="C", **NETWORKS)
        node = Node.objects.get(name="gpu-1")
        Node.objects.create(
            cluster=cluster, name="n", ready=True, labels=node.labels, allocatable=node.allocatable
        )
        pools.append(stage.another_pool(f"pool-{number}", cluster=cluster))
        stage.quota(8, pool=pools[-1])
        stage.request(1, pool=pools[-1])
    assert sum(at_once(lambda number: admission.admit(pools[number].pk))) == 3


def test_passes_in_two_clusters_that_share_a_limit_run_one_after_the_other(stage: Stage) -> None:
    TenantLimit.objects.create(tenant=stage.cast.demo, workspaces=1)
    far = Cluster.objects.create(slug="far", name="Far", **NETWORKS)
    stage.node("gpu-far", cluster=far)
    pool = stage.another_pool("far", cluster=far)
    stage.quota(4, pool=pool)
    stage.request()
    stage.request(pool=pool)

    with transaction.atomic():
        assert stage.admit() == 1
        other = elsewhere(lambda: stage.admit(pool))
        until(waits_for_me)
    other.join()
    assert admitted_units() == 1


def test_only_one_of_many_concurrent_releases_succeeds(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = stage.running()
    told: list[Any] = []
    monkeypatch.setattr(claim_released, "receivers", [])
    hear = lambda **kwargs: told.append(kwargs["claim"].pk)  # noqa: E731
    claim_released.connect(hear)
    assert sum(at_once(lambda _: admission.release(claim.pk, "stopped"))) == 1
    assert told == [claim.pk]


def test_only_one_of_many_concurrent_ends_of_a_claim_succeeds(stage: Stage) -> None:
    claim = stage.running(4)

    def hand_on(number: int) -> bool:
        try:
            if number % 3 == 0:
                return admission.release(claim.pk, "stopped")
            if number % 3 == 1:
                admission.renew(claim)
            else:
                admission.send_back(claim, "unschedulable", {})
        except Conflict:
            return False
        return True

    assert sum(at_once(hand_on)) == 1
    assert Claim.objects.filter(holder_id=claim.holder_id).exclude(state="released").count() <= 1
    assert admitted_units() in {0, 4}


def test_a_claim_withdrawn_during_a_pass_is_released(stage: Stage) -> None:
    stage.quota(8)
    claims = [stage.request() for _ in range(8)]

    def race(number: int) -> int:
        return stage.admit() if number == 0 else int(admission.release(claims[number].pk, "withdrawn"))

    admitted, *withdrawn = at_once(race)
    assert all(withdrawn)
    assert states(claims[1:]) == ["released"] * 7
    assert admitted >= 1


def test_a_claim_that_is_released_after_a_pass_decided_to_start_it_stays_released(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.quota(8)
    released, started = stage.request(), stage.request()

    def decide_then_release(snapshot: Any) -> Any:
        decisions = decide(snapshot)
        assert len(decisions.admitted) == 2
        admission.release(released.pk, "withdrawn")
        return decisions

    monkeypatch.setattr(admission, "decide", decide_then_release)
    assert stage.admit() == 1
    assert states([released, started]) == ["released", "admitted"]


def test_the_same_holder_cannot_claim_twice(stage: Stage) -> None:
    holder = stage.request().holder_id
    Claim.objects.all().delete()

    def claim_once(_: int) -> bool:
        try:
            with transaction.atomic():
                stage.request(holder_id=holder)
        except Conflict:
            return False
        return True

    assert sum(at_once(claim_once)) == 1


@pytest.mark.slow
def test_two_hundred_requests_at_once_start_exactly_as_many_as_the_quota(stage: Stage) -> None:
    stage.quota(8)

    def launch(_: int) -> None:
        for _ in range(5):
            with transaction.atomic():
                for _ in range(5):
                    stage.request()
            stage.admit()

    at_once(launch)
    assert admitted_units() == 8
    running = Claim.objects.filter(state="admitted").order_by("place")
    assert Claim.objects.filter(state="waiting").count() == 192

    for claim in list(running[:3]):
        last = Claim.objects.filter(state="waiting").order_by("place")[0]
        admission.release(claim.pk, "stopped")
        assert stage.admit() == 1
        assert states([last]) == ["admitted"]


def test_confirming_an_end_waits_for_the_clusters_lock(stage: Stage) -> None:
    """Prevents a deadlock: the two lock a claim's row and its holder's in opposite order."""
    run = stage.running()
    admission.flag_unproven_end(run.pk)
    order: list[str] = []

    def confirm() -> None:
        admission.confirm_end(stage.cast.admin, run)
        order.append("confirmed")

    with transaction.atomic():
        admission.lock(stage.pool.cluster_id)
        confirming = elsewhere(confirm)
        until(waits_for_me)
        Claim.objects.select_for_update(nowait=True).get(pk=run.pk)
        order.append("changed")
    confirming.join()
    assert order == ["changed", "confirmed"]


def test_a_pass_that_waited_while_its_pool_was_closed_starts_nothing(stage: Stage) -> None:
    claim = stage.request()

    with transaction.atomic():
        admission.lock(stage.pool.cluster_id)
        waiting = elsewhere(stage.admit)
        until(waits_for_me)
        opening.set_open(stage.cast.admin, stage.pool, is_open=False)
    waiting.join()
    assert states([claim]) == ["waiting"]


def test_a_pass_takes_holders_in_one_order(stage: Stage) -> None:
    """Prevents a deadlock with code that enqueues many holders, and locks them in the same order."""
    holders = [stage.request(holder_id=uuid4()).holder_id for _ in range(4)]
    started: list[UUID] = []

    def hear(claim: Claim, **_: Any) -> None:
        started.append(claim.holder_id)

    claim_admitted.connect(hear)
    stage.admit()
    claim_admitted.disconnect(hear)
    assert started == sorted(holders)
