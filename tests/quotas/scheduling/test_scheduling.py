"""The rules of the queue, on plain values."""

from __future__ import annotations

from datetime import timedelta

from quotas.scheduling import BACK_OFF_MOST, Decisions, Limits, NodeState, Reason, TenantQuota, as_gpus
from tests.quotas.scheduling.values import NOW, SECOND, asks, codes, decided, room, started


def node(name: str, free: int, of: int = 4, **others: int) -> NodeState:
    return NodeState(name, free=room(free, **others), without_ours=room(of))


def nodes_of(decisions: Decisions) -> list[str]:
    return [admitted.node for admitted in decisions.admitted]


def test_first_come_is_served_first() -> None:
    first, second = asks(4), asks(4)
    decisions = decided([node("a", 4)], second, first)
    assert started(decisions) == [first.claim]
    assert codes(decisions) == ["no_free_gpus"]


def test_higher_priority_goes_before_an_earlier_place() -> None:
    early, urgent = asks(4), asks(4, priority=5)
    assert started(decided([node("a", 4)], early, urgent)) == [urgent.claim]


def test_the_fullest_node_that_fits_is_chosen_so_that_whole_nodes_stay_free() -> None:
    nodes = [node("empty", 4), node("fits", 2), node("too-full", 1)]
    assert nodes_of(decided(nodes, asks(2))) == ["fits"]


def test_of_equally_full_nodes_the_one_with_least_cpu_left_is_chosen_then_by_name() -> None:
    assert nodes_of(decided([node("a", 2), node("b", 2, cpu=8000)], asks(1))) == ["b"]
    assert nodes_of(decided([node("b", 2), node("a", 2)], asks(1))) == ["a"]


def test_a_started_claim_takes_room_from_the_next() -> None:
    decisions = decided([node("a", 4)], asks(3), asks(1), asks(1))
    assert nodes_of(decisions) == ["a", "a"]
    assert decisions.waits[0].reason == Reason("no_free_gpus", {"gpus": 1, "free_gpus": 0})


def test_a_tenant_at_its_quota_waits_and_others_pass() -> None:
    full = TenantQuota(used_units=8, limit_units=8)
    mine, theirs = asks(1), asks(1, tenant=SECOND)
    decisions = decided([node("a", 4)], mine, theirs, demo=full)
    assert started(decisions) == [theirs.claim]
    assert decisions.waits[0].reason == Reason("quota_full", {"gpus": 1, "used_gpus": 8, "limit_gpus": 8})


def test_a_small_request_does_not_overtake_a_large_one_of_its_own_tenant_that_waits_for_quota() -> None:
    decisions = decided([node("a", 4)], asks(4), asks(1), demo=TenantQuota(used_units=5, limit_units=8))
    assert codes(decisions) == ["quota_full", "behind_own_tenant"]


def test_quota_is_used_up_within_one_pass() -> None:
    decisions = decided([node("a", 4)], asks(1), asks(1), asks(1), demo=TenantQuota(0, limit_units=2))
    assert len(decisions.admitted) == 2
    assert codes(decisions) == ["quota_full"]


def test_without_known_ends_the_node_of_a_waiting_claim_stays_reserved() -> None:
    decisions = decided([node("a", 3)], asks(4), asks(1), asks(1, tenant=SECOND))
    assert not decisions.admitted
    assert codes(decisions) == ["no_free_gpus", "behind_larger", "behind_larger"]
    assert decisions.waits[1].reason.data == {"gpus": 4}
    assert [waits.position for waits in decisions.waits] == [1, 2, 3]
    assert [waits.units_ahead for waits in decisions.waits] == [0, 4, 5]


def test_a_request_that_fits_no_node_delays_nobody() -> None:
    small = asks(1)
    decisions = decided([node("a", 4)], asks(8), small)
    assert started(decisions) == [small.claim]
    assert decisions.waits[0].reason == Reason("no_node_has_gpus", {"gpus": 8, "largest_gpus": 4})


def test_room_taken_by_foreign_pods_is_not_waited_for() -> None:
    """Foreign pods may stay for ever, and a queue behind them would never move."""
    foreign = NodeState("a", free=room(3), without_ours=room(3))
    small = asks(1)
    decisions = decided([foreign], asks(4), small)
    assert started(decisions) == [small.claim]
    assert codes(decisions) == ["no_node_has_gpus"]


def test_fragmentation_has_its_figures() -> None:
    decisions = decided([node("a", 3), node("b", 3)], asks(4))
    figures = {"gpus": 4, "free_gpus": 6, "largest_free_gpus": 3, "nodes": 2}
    assert decisions.waits[0].reason == Reason("fragmented", figures)


def test_lack_of_cpu_memory_or_pods_beside_free_gpus_has_its_own_reason() -> None:
    cpu = decided([node("a", 4, cpu=500), node("b", 0)], asks(1))
    assert cpu.waits[0].reason == Reason("no_free_cpu", {"asked": 1000, "free": 500})
    memory = decided([node("a", 4, memory_mib=512), node("b", 0)], asks(1))
    assert memory.waits[0].reason == Reason("no_free_memory", {"asked": 1024, "free": 512})
    assert codes(decided([node("a", 4, pods=0)], asks(1))) == ["no_free_pods"]


def test_without_a_ready_node_all_requests_have_that_reason() -> None:
    assert codes(decided([], asks(1), asks(1, tenant=SECOND))) == ["no_node_ready", "no_node_ready"]


def test_during_back_off_a_request_keeps_its_reason_and_delays_nobody() -> None:
    why = Reason("unschedulable_taint", {"node": "a"})
    sent_back = asks(4, not_before=NOW + timedelta(seconds=1), reason=why)
    other = asks(1)
    decisions = decided([node("a", 3)], sent_back, other)
    assert started(decisions) == [other.claim]
    assert decisions.waits[0].reason == why


def test_after_its_back_off_a_request_is_first_again() -> None:
    sent_back = asks(4, not_before=NOW, place=0)
    assert started(decided([node("a", 4)], asks(4), sent_back)) == [sent_back.claim]


def test_a_back_off_is_over_if_the_clock_was_set_back_since_it_was_written() -> None:
    sent_back = asks(4, not_before=NOW + BACK_OFF_MOST + timedelta(seconds=1))
    assert started(decided([node("a", 4)], sent_back)) == [sent_back.claim]


def test_a_tenant_without_quota_delays_nobody() -> None:
    decisions = decided([node("a", 4)], asks(1), asks(1, tenant=SECOND), demo=TenantQuota(0, limit_units=0))
    assert codes(decisions) == ["no_quota"]
    assert len(decisions.admitted) == 1


def test_a_request_above_a_lowered_quota_does_not_delay_its_tenant() -> None:
    small = asks(1)
    decisions = decided([node("a", 4)], asks(3), small, demo=TenantQuota(0, limit_units=2))
    assert started(decisions) == [small.claim]
    assert decisions.waits[0].reason == Reason("above_quota", {"gpus": 3, "limit_gpus": 2})


def test_a_pool_without_gpus_is_open_within_the_tenants_limits() -> None:
    limits = Limits(cpu_millicores=3000, memory_mib=None, workspaces=None)
    demo = TenantQuota(0, limit_units=None, used=Limits(1500, 0, 1), limits=limits)
    decisions = decided([node("a", 0, of=0)], asks(0), asks(0), asks(0, tenant=SECOND), demo=demo)
    assert len(decisions.admitted) == 2
    assert decisions.waits[0].reason == Reason("cpu_limit_full", {"together": 3500, "limit": 3000})


def test_the_limit_of_workspaces_does_not_count_jobs() -> None:
    lowered = TenantQuota(0, limit_units=None, used=Limits(0, 0, 3), limits=Limits(workspaces=2))
    job, workspace = asks(0, is_workspace=False), asks(0)
    decisions = decided([node("a", 0, of=0)], job, workspace, demo=lowered)
    assert started(decisions) == [job.claim]
    assert codes(decisions) == ["workspaces_limit_full"]


def test_a_request_above_the_tenants_limit_delays_nobody() -> None:
    demo = TenantQuota(0, limit_units=None, limits=Limits(memory_mib=2048))
    decisions = decided([node("a", 0, of=0)], asks(0, memory_mib=4096), asks(0), demo=demo)
    assert decisions.waits[0].reason == Reason("above_memory_limit", {"asked": 4096, "limit": 2048})
    assert len(decisions.admitted) == 1


def test_replicas_are_shown_as_parts_of_a_gpu() -> None:
    quota = TenantQuota(used_units=7, limit_units=8)
    decisions = decided([node("a", 16, of=16)], asks(2), units_per_gpu=4, demo=quota)
    assert decisions.waits[0].reason.data == {"gpus": 0.5, "used_gpus": 1.75, "limit_gpus": 2}
    assert as_gpus(8, 4) == 2 and isinstance(as_gpus(8, 4), int)
