"""Room of HAMi pools, which cut GPUs by memory and cores: counted by card, and no part is given out twice."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from clusters.models import Node, PodUsage
from quotas import admission, sharing
from quotas.models import Claim, Pool, Sharing
from quotas.pools.map_queries import Nodes, Viewer
from quotas.pools.nodes import nodes_of
from quotas.queries import pools_for
from quotas.scheduling import Card
from tests.shared.stage import GPU, Stage

pytestmark = pytest.mark.django_db

WHOLE = Card(81_920, 100, 10)


def card(name: str, **changes: Any) -> dict[str, Any]:
    return {"id": name, "memory_mib": 81_920, "cores": 100, "slots": 10, "usable": True} | changes


@pytest.fixture
def pool(stage: Stage) -> Pool:
    """Pool of HAMi with two cards on gpu-1; gpu-2 is not in the pool."""
    stage.change_node("gpu-2", labels={})
    stage.change_node("gpu-1", devices=[card("GPU-a"), card("GPU-b")])
    Node.objects.filter(name="gpu-1").update(
        allocatable=Node.objects.get(name="gpu-1").allocatable | {GPU: 20}
    )
    Pool.objects.update(sharing=Sharing.HAMI, units_per_gpu=100)
    stage.pool.refresh_from_db()
    return stage.pool


def free(pool: Pool) -> tuple[Card, ...]:
    (node,) = nodes_of([pool])[pool.id].healthy
    return node.free.cards


def asked(stage: Stage, pool: Pool, gpus: str, memory_mib: int | None = None, **values: Any) -> Claim:
    portion = sharing.of(pool).portion(pool, Fraction(gpus), memory_mib)
    return stage.request(portion=portion, **values)


def admitted(pool: Pool, claim: Claim) -> Claim:
    admission.admit(pool.id)
    claim.refresh_from_db()
    return claim


def test_a_run_is_counted_on_the_fullest_card_until_its_card_is_known(stage: Stage, pool: Pool) -> None:
    first = admitted(pool, asked(stage, pool, "0.5", 20_480))
    assert (first.state, first.cards, first.card_memory_mib, first.card_cores) == ("admitted", 1, 20_480, 50)
    assert free(pool) == (Card(61_440, 50, 9), WHOLE)
    usage = stage.pod("gpu-1", run=first.pk)
    assert free(pool) == (Card(61_440, 50, 9), WHOLE)  # bound, its card not reported yet
    usage.devices = [{"id": "GPU-b", "memory_mib": 20_480, "cores": 50}]
    usage.save()
    assert free(pool) == (WHOLE, Card(61_440, 50, 9))


def test_cards_of_foreign_pods_are_not_free(stage: Stage, pool: Pool) -> None:
    stage.pod("gpu-1")
    PodUsage.objects.update(devices=[{"id": "GPU-a", "memory_mib": 80_000, "cores": 0}])
    assert free(pool) == (Card(1920, 100, 9), WHOLE)
    assert admitted(pool, asked(stage, pool, "1")).node == "gpu-1"
    assert admitted(pool, asked(stage, pool, "0.5")).state == "waiting"  # 1920 MiB are left


def test_a_pod_keeps_its_cards_until_it_is_gone(stage: Stage, pool: Pool) -> None:
    claim = admitted(pool, asked(stage, pool, "1"))
    stage.pod("gpu-1", run=claim.pk)
    PodUsage.objects.update(devices=[{"id": "GPU-b", "memory_mib": 81_920, "cores": 100}])
    admission.release(claim.pk, "stopped")
    assert free(pool) == (WHOLE, Card(0, 0, 9))
    PodUsage.objects.all().delete()
    assert free(pool) == (WHOLE, WHOLE)


def test_a_broken_card_has_no_room_but_refuses_no_request(stage: Stage, pool: Pool) -> None:
    stage.change_node("gpu-1", devices=[card("GPU-a", usable=False), card("GPU-b")])
    assert free(pool) == (WHOLE,)
    two = admitted(pool, asked(stage, pool, "2"))
    assert two.state == "waiting"
    stage.change_node("gpu-1", devices=[card("GPU-a"), card("GPU-b")])
    assert admitted(pool, two).state == "admitted"


def test_without_an_announcement_of_hami_a_node_gives_nothing(stage: Stage, pool: Pool) -> None:
    stage.change_node("gpu-1", devices=[])
    (node,) = nodes_of([pool])[pool.id].healthy
    assert (node.free.units, node.free.cards) == (0, ())


def test_memory_binds_where_cores_are_free_and_cores_where_memory_is(stage: Stage, pool: Pool) -> None:
    stage.quota(4)
    for gpus, memory_mib in (("0.1", 70_000), ("0.1", 70_000), ("0.85", 8_000), ("0.85", 8_000)):
        assert admitted(pool, asked(stage, pool, gpus, memory_mib)).state == "admitted"
    assert free(pool) == (Card(3920, 5, 8), Card(3920, 5, 8))
    assert admitted(pool, asked(stage, pool, "0.05", 4096)).state == "waiting"
    Claim.objects.filter(state="waiting").delete()
    assert admitted(pool, asked(stage, pool, "0.05", 1024)).state == "admitted"


def test_slots_are_counted_too(stage: Stage, pool: Pool) -> None:
    stage.change_node("gpu-1", devices=[card("GPU-a", slots=1), card("GPU-b", slots=1)])
    states = [admitted(pool, asked(stage, pool, "0.1")).state for _number in range(3)]
    assert states == ["admitted", "admitted", "waiting"]


def test_a_run_of_several_cards_takes_of_each(stage: Stage, pool: Pool) -> None:
    claim = admitted(pool, asked(stage, pool, "1.5"))
    assert (claim.cards, claim.units) == (2, 150)
    assert free(pool) == (Card(20_480, 25, 9), Card(20_480, 25, 9))


def test_successors_of_a_claim_request_the_same_cards(stage: Stage, pool: Pool) -> None:
    claim = admitted(pool, asked(stage, pool, "1.5"))
    renewed = admission.renew(claim)
    back = admission.send_back(renewed, "no_free_gpus", {})
    assert (back.cards, back.card_memory_mib, back.card_cores, back.units) == (2, 61_440, 75, 150)


def test_people_see_gpus_not_slots(stage: Stage, pool: Pool) -> None:
    admitted(pool, asked(stage, pool, "0.5", 20_480))
    (seen,) = pools_for(stage.cast.alice)
    assert seen["gpus"] == {"total": 2, "free": 1.5, "mine": 0.5}
    assert (seen["sharing"], seen["isolation"]) == ("hami", "soft cap")


def test_the_map_counts_the_cards_of_foreign_pods(stage: Stage, pool: Pool) -> None:
    stage.pod("gpu-1", 1)
    PodUsage.objects.update(devices=[{"id": "GPU-a", "memory_mib": 20_480, "cores": 40}])
    viewer = Viewer(stage.cast.admin)
    nodes = Nodes.read([pool], nodes_of([pool]))
    nodes.look_closer(nodes.of(pool), viewer)
    (node,) = nodes.of(pool)
    assert nodes.row(pool, node, 1, viewer).words == "0.4 outside Berth · 1.6 free"


def test_room_is_read_with_as_many_queries_for_many_runs_as_for_one(
    stage: Stage, pool: Pool, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(4):
        admitted(pool, asked(stage, pool, "0.1"))
        with django_assert_num_queries(5):
            nodes_of([pool])
