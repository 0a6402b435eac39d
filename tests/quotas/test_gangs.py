"""Claims of several nodes in the database: requested, admitted, counted, and ended as a whole."""

from __future__ import annotations

import uuid
from datetime import timedelta
from fractions import Fraction

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from accounts.errors import Invalid
from accounts.models import Tenant
from clusters.models import Node, PodUsage
from quotas import admission
from quotas.accounting.hours import hours
from quotas.allowed.usage import held_by_people, held_by_tenants, held_in_pools
from quotas.models import Claim, Quota, TenantLimit
from quotas.pools.map_queries import Nodes, Viewer, queues
from quotas.pools.members import members_at
from quotas.pools.nodes import claims_on, free_on_each, nodes_of
from quotas.queries import queues_of
from quotas.scheduling import Limits
from tests.shared.stage import Stage, states

pytestmark = pytest.mark.django_db


@pytest.fixture
def wide(stage: Stage) -> Stage:
    """The stage, on which tenants may have all eight GPUs."""
    Quota.objects.update(nominal_gpus=8)
    return stage


def test_a_gang_is_admitted_to_a_node_for_each_member(wide: Stage) -> None:
    claim = wide.running(4, nodes=2)
    assert (claim.nodes, claim.node, claim.members) == (["gpu-1", "gpu-2"], "gpu-1", 2)
    assert {name: room.units for name, room in free_on_each(wide.pool).items()} == {"gpu-1": 0, "gpu-2": 0}


def test_a_claim_of_one_knows_one_node(stage: Stage) -> None:
    claim = stage.running(2)
    assert (claim.nodes, claim.members) == (["gpu-1"], 1)


def test_a_gang_that_does_not_fit_now_waits_and_holds_nothing(wide: Stage) -> None:
    wide.running(1, by=wide.cast.carol)
    gang = wide.request(4, nodes=2)
    assert wide.admit() == 0
    gang.refresh_from_db()
    assert (gang.state, gang.nodes, gang.node) == ("waiting", [], "")
    assert (gang.reason_code, gang.reason_data) == ("no_room_for_all", {"nodes": 2, "fitting": 1})
    assert sum(node.free.units for node in nodes_of([wide.pool])[wide.pool.id].healthy) == 7


@pytest.mark.parametrize("nodes", [["gpu-1"], ["gpu-2", "gpu-1"], []])
def test_no_row_can_have_some_of_the_nodes_of_a_gang(wide: Stage, nodes: list[str]) -> None:
    claim = wide.running(1, nodes=2)
    with pytest.raises(IntegrityError, match="admitted_with_all_members"), transaction.atomic():
        Claim.objects.filter(pk=claim.pk).update(nodes=nodes, node="gpu-1")


@pytest.mark.parametrize(
    ("gpus", "nodes", "code"),
    [
        (4, 3, "no_room_for_so_many"),
        (5, 2, "no_node_has_gpus"),
        (2, 5, "quota_exceeded"),
        (1, 0, "invalid_nodes"),
        (1, 1 << 30, "invalid_nodes"),
    ],
)
def test_what_never_fits_is_refused(wide: Stage, gpus: int, nodes: int, code: str) -> None:
    if code.startswith("no_"):
        Quota.objects.update(nominal_gpus=100)
    with pytest.raises(Invalid) as refused:
        wide.request(gpus, nodes=nodes)
    assert refused.value.code == code


def test_limits_of_the_tenant_and_its_people_count_all_members(wide: Stage) -> None:
    TenantLimit.objects.create(tenant=wide.cast.demo, cpu_millicores=3000)
    with pytest.raises(Invalid) as refused:
        wide.request(1, nodes=4)
    assert refused.value.code == "above_cpu_limit"
    TenantLimit.objects.update(cpu_millicores=None, person_gpus=5)
    wide.cast.demo.refresh_from_db()
    with pytest.raises(Invalid) as refused:
        wide.request(2, nodes=3)
    assert refused.value.code == "above_person_gpus"


def test_use_counts_all_members(wide: Stage) -> None:
    wide.running(2, nodes=3)
    tenant, person = wide.cast.demo.pk, wide.cast.alice.user.pk
    units, amounts = held_by_tenants({tenant})
    assert units[tenant, wide.pool.pk] == 6
    assert amounts[tenant] == Limits(3000, 3 * 1024, 1)
    assert held_by_people({tenant})[tenant, person] == (Fraction(6), 1)
    assert held_in_pools({wide.pool.pk})[wide.pool.pk] == 6


def test_a_restart_keeps_all_nodes(wide: Stage) -> None:
    claim = wide.running(4, nodes=2)
    successor = admission.renew(claim)
    assert (successor.nodes, successor.members, successor.state) == (claim.nodes, 2, "admitted")


@pytest.mark.parametrize("how", ["send_back", "give_back"])
def test_a_gang_goes_back_to_the_queue_as_a_whole(wide: Stage, how: str) -> None:
    claim = wide.running(4, nodes=2)
    back = (
        admission.send_back(claim, "unschedulable", {}) if how == "send_back" else admission.give_back(claim)
    )
    assert (back.state, back.members, back.nodes) == ("waiting", 2, [])
    assert sum(node.free.units for node in nodes_of([wide.pool])[wide.pool.id].healthy) == 8


def test_a_release_ends_all_members(wide: Stage) -> None:
    claim = wide.running(4, nodes=2)
    assert admission.release(claim.pk, "stopped")
    assert wide.running(4, nodes=2).nodes == ["gpu-1", "gpu-2"]


def test_two_gangs_that_need_the_whole_pool_run_one_after_the_other(wide: Stage) -> None:
    wide.running(1)
    first, second = wide.request(4, nodes=2), wide.request(4, nodes=2, by=wide.cast.carol)
    assert wide.admit() == 0
    admission.release(Claim.objects.get(state="admitted").pk, "stopped")
    assert wide.admit() == 1
    running = Claim.objects.get(state="admitted")
    assert running in (first, second)
    admission.release(running.pk, "stopped")
    assert wide.admit() == 1
    assert sorted(states([first, second])) == ["admitted", "released"]


# Nodes and pods


def test_pods_count_where_they_are() -> None:
    chosen = ["a", "a", "b"]
    assert members_at(chosen, []) == [("a", False), ("a", False), ("b", False)]
    assert members_at(chosen, ["b"]) == [("b", True), ("a", False), ("a", False)]
    assert members_at(chosen, ["c", "a"]) == [("c", True), ("a", True), ("a", False)]
    assert members_at(["a"], ["b", "c"]) == [("b", True)]


def test_each_member_is_counted_once_whether_its_pod_is_there_or_not(wide: Stage) -> None:
    claim = wide.running(3, nodes=2)
    wide.node("gpu-3")
    for pods in ((), ("gpu-1",), ("gpu-1", "gpu-2"), ("gpu-3", "gpu-2")):
        PodUsage.objects.all().delete()
        for node in pods:
            wide.pod(node, 3, run=claim.pk)
        free = {node.name: node.free.units for node in nodes_of([wide.pool])[wide.pool.id].healthy}
        assert sum(free.values()) == 6, pods
        assert all(free[node] == 1 for node in pods or ("gpu-1", "gpu-2"))


def test_whoever_asks_for_a_node_gets_the_gangs_there(wide: Stage) -> None:
    gang, single = wide.running(3, nodes=2), wide.running(1)
    assert single.node == "gpu-1"
    assert claims_on(wide.cast.cluster.pk, "gpu-2") == [gang]
    assert claims_on(wide.cast.cluster.pk, "gpu-1") == [gang]  # no pod of the other is there yet
    wide.node("gpu-3")
    wide.pod("gpu-3", 3, run=gang.pk)
    wide.pod("gpu-1", 3, run=gang.pk)
    assert [claims_on(wide.cast.cluster.pk, f"gpu-{number}") for number in (1, 2, 3)] == [[gang], [], [gang]]


def test_the_map_shows_each_member_on_its_node(wide: Stage) -> None:
    gang = wide.running(3, nodes=2)
    wide.pod("gpu-2", 3, run=gang.pk)
    shown = Nodes.read([wide.pool], nodes_of([wide.pool]))
    viewer = Viewer(wide.cast.alice)
    shown.look_closer(Node.objects.all(), viewer)
    rows = [shown.row(wide.pool, node, 1, viewer) for node in shown.of(wide.pool)]
    mine = [[part.units for part, _words in row.parts if part.kind == "mine"] for row in rows]
    assert mine == [[3], [3]]


def test_the_queue_shows_nodes_and_counts_all_units_ahead(wide: Stage) -> None:
    wide.running(1)
    wide.request(4, nodes=2)
    second = wide.request(1, by=wide.cast.carol)
    [row, _other] = queues([wide.pool], Viewer(wide.cast.alice))[wide.pool.pk]
    assert (row.nodes, row.asked) == (2, 4)
    assert queues_of([second.pk])[second.pk]["gpus_ahead"] == 8


# Ledger


def test_the_ledger_counts_each_node_once(wide: Stage) -> None:
    claim = wide.running(2, nodes=3)
    now = timezone.now()
    Claim.objects.filter(pk=claim.pk).update(admitted_at=now - timedelta(hours=2))
    where = Q(pool=wide.pool)
    found = hours(where, now.date() - timedelta(days=2), now.date(), ("tenant_id",), now)
    assert round(found[wide.cast.demo.pk,].allocated, 3) == 12
    admission.release(claim.pk, "stopped")
    claim.refresh_from_db()
    assert claim.released_at is not None
    end = claim.released_at + timedelta(hours=1)
    found = hours(where, now.date() - timedelta(days=2), end.date(), ("tenant_id",), end)
    held = Fraction(
        (claim.released_at - now + timedelta(hours=2)) // timedelta(microseconds=1), 3_600_000_000
    )
    assert found[wide.cast.demo.pk,].allocated == 6 * held


# Preemption


def test_a_gang_is_preempted_and_comes_back_as_a_whole(stage: Stage) -> None:
    second: Tenant = stage.cast.second
    Quota.objects.filter(tenant=second).update(nominal_gpus=0, borrowing_limit_gpus=8)
    gang = stage.running(4, nodes=2, by=stage.cast.carol, holder_id=uuid.uuid4())
    owner = stage.request(2)
    stage.admit()
    gang.refresh_from_db()
    assert (gang.reclaim_for, gang.reclaim_code) == (owner.pk, "owner_waits")
    back = admission.give_back(gang)
    assert (back.members, back.returns_first) == (2, True)
    stage.admit()
    assert states([owner, back]) == ["admitted", "waiting"]
