"""Claims in the database: requested, admitted, waiting, released."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.dispatch import Signal
from django.utils import timezone

from accounts.errors import Conflict, Invalid, NotAllowed
from accounts.models import AuditEntry
from clusters.models import Node
from quotas import admission
from quotas.models import Claim, Quota, TenantLimit
from quotas.signals import claim_admitted, claim_released, claim_waits
from tests.shared.stage import GPU, Stage, admitted_units, again, states

pytestmark = pytest.mark.django_db


class Heard:
    """Records what a signal sent during the test."""

    def __init__(self, signal: Signal) -> None:
        self.signal, self.sent = signal, []  # type: tuple[Signal, list[dict[str, Any]]]

    def __call__(self, **kwargs: Any) -> None:
        self.sent.append(kwargs)

    def __enter__(self) -> Heard:
        self.signal.connect(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.signal.disconnect(self)

    @property
    def claims(self) -> list[uuid.UUID]:
        return [values["claim"].pk for values in self.sent]


def test_a_request_with_room_is_admitted_to_a_node(stage: Stage) -> None:
    claim = stage.request(2)
    with Heard(claim_admitted) as admitted:
        assert stage.admit() == 1
    after = again(claim)
    assert (after.state, after.node, after.reason_code) == ("admitted", "gpu-1", "")
    assert after.admitted_at is not None
    assert admitted.claims == [claim.pk]


def test_a_release_lets_exactly_one_start(stage: Stage) -> None:
    claims = [stage.request() for _ in range(6)]
    assert stage.admit() == 4
    assert again(claims[4]).reason_code == "quota_full"
    assert admission.release(claims[2].pk, "stopped")
    assert stage.admit() == 1
    assert states(claims) == ["admitted", "admitted", "released", "admitted", "admitted", "waiting"]


def test_a_claim_is_released_once(stage: Stage) -> None:
    claim = stage.running()
    with Heard(claim_released) as released:
        assert admission.release(claim.pk, "stopped") is True
        assert admission.release(claim.pk, "stopped") is False
    assert released.claims == [claim.pk]
    assert again(claim).reason_code == "stopped"


def test_a_waiting_claim_can_be_withdrawn_and_is_not_admitted_any_more(stage: Stage) -> None:
    claim = stage.request()
    assert admission.release(claim.pk, "withdrawn")
    assert stage.admit() == 0


def test_a_reason_is_saved_and_signalled_only_when_it_changes(stage: Stage) -> None:
    for _ in range(4):
        stage.request()
    late = stage.request()
    with Heard(claim_waits) as waits:
        stage.admit()
        stage.admit()
    assert waits.claims == [late.pk]


def test_foreign_pods_take_room(stage: Stage) -> None:
    stage.pod("gpu-1", 3)
    stage.pod("gpu-2", 4)
    claims = [stage.request() for _ in range(2)]
    assert stage.admit() == 1
    assert again(claims[1]).reason_data == {"gpus": 1, "free_gpus": 0}


def test_a_run_counts_where_its_pod_really_is(stage: Stage) -> None:
    stage.quota(8)
    run = stage.running(4)
    assert run.node == "gpu-1"
    stage.pod("gpu-2", 4, run=run.pk)
    other = stage.running(4)
    assert other.node == "gpu-1"


def test_a_run_whose_node_another_filled_keeps_its_room_on_the_nodes_that_are_left(stage: Stage) -> None:
    """The cluster may place a pod on another node than the chosen one: even then nothing is given twice."""
    stage.quota(16)
    chosen, displacing = stage.running(2), stage.running(3)
    assert (chosen.node, displacing.node) == ("gpu-1", "gpu-2")
    stage.pod("gpu-1", 3, run=displacing.pk)
    whole_node = stage.request(4)
    assert stage.admit() == 0
    admission.release(whole_node.pk, "withdrawn")
    assert stage.running(3).node == "gpu-2"


def test_a_run_whose_pod_is_gone_from_another_node_keeps_its_room_until_it_is_released(stage: Stage) -> None:
    """The claim still names the node chosen first, which another run fills by now."""
    stage.quota(16)
    elsewhere = stage.running(4)
    pod = stage.pod("gpu-2", 4, run=elsewhere.pk)
    assert stage.running(4).node == elsewhere.node
    pod.delete()
    stage.request(1)
    assert stage.admit() == 0
    admission.release(elsewhere.pk, "stopped")
    assert stage.admit() == 1


def test_a_run_and_its_pod_are_counted_once(stage: Stage) -> None:
    run = stage.running(2)
    stage.pod(run.node, 2, run=run.pk)
    assert stage.running(2).node == run.node


def test_a_pod_of_a_released_run_takes_room_until_it_is_gone(stage: Stage) -> None:
    run = stage.running(4)
    pod = stage.pod(run.node, 4, run=run.pk)
    stage.change_node("gpu-2", ready=False)
    admission.release(run.pk, "stopped")
    waiting = stage.request(4)
    assert stage.admit() == 0
    assert again(waiting).reason_code == "no_free_gpus"
    pod.delete()
    assert stage.admit() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"ready": False},
        {"unschedulable": True},
        {"labels": {}},
        {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]},
        {"allocatable": {"cpu": 64_000, "memory": 2**40, "pods": 110}},
    ],
)
def test_an_unfit_node_gets_no_claims(stage: Stage, change: dict[str, Any]) -> None:
    stage.change_node("gpu-1", **change)
    claims = [stage.request(1) for _ in range(3)]
    stage.admit()
    assert {again(claim).node for claim in claims} == {"gpu-2"}


def test_a_tolerated_taint_is_ignored(stage: Stage) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    Node.objects.update(taints=[taint, {"key": "soft", "effect": "PreferNoSchedule"}])
    stage.pool.tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    stage.pool.save()
    stage.running()


def test_when_nodes_shrink_nothing_more_is_admitted_and_nothing_is_taken_back(stage: Stage) -> None:
    stage.quota(8)
    run = stage.running(4)
    stage.pod(run.node, 4, run=run.pk)
    Node.objects.update(allocatable={"cpu": 64_000, "memory": 2**40, "pods": 110, GPU: 2})
    for _ in range(3):
        stage.request(2)
    assert stage.admit() == 1
    assert admitted_units() == 6


def test_units_of_a_lost_node_still_count_for_the_quota(stage: Stage) -> None:
    run = stage.running(4)
    Node.objects.filter(name=run.node).delete()
    claim = stage.request(1)
    assert stage.admit() == 0
    assert again(claim).reason_code == "quota_full"


def test_a_tenants_limit_holds_over_all_pools(stage: Stage) -> None:
    TenantLimit.objects.create(tenant=stage.cast.demo, workspaces=2)
    cpu = stage.cpu_pool()
    stage.running(1)
    stage.running(0, pool=cpu)
    late = stage.request(0, pool=cpu)
    assert stage.admit(cpu) == 0
    assert (again(late).reason_code, again(late).reason_data) == (
        "workspaces_limit_full",
        {"together": 3, "limit": 2},
    )


def test_a_restart_keeps_units_and_node_even_when_others_wait_for_them(stage: Stage) -> None:
    run = stage.running(4)
    stage.request(4)
    with Heard(claim_released) as released, Heard(claim_admitted) as admitted:
        successor = admission.renew(run)
    assert (successor.state, successor.node, successor.holder_id) == ("admitted", run.node, run.holder_id)
    assert (released.claims, admitted.claims) == ([run.pk], [successor.pk])
    assert stage.admit() == 0


def test_only_a_running_claim_can_be_renewed_or_sent_back_and_only_once(stage: Stage) -> None:
    run = stage.running()
    admission.renew(run)
    with pytest.raises(Conflict):
        admission.renew(run)
    with pytest.raises(Conflict):
        admission.send_back(stage.request(), "why", {})


def test_a_claim_sent_back_keeps_its_place_and_waits_for_its_back_off(stage: Stage) -> None:
    run = stage.running(4)
    behind = stage.request(4)
    successor = admission.send_back(run, "unschedulable", {"node": "gpu-1"})
    assert successor.place == run.place < behind.place
    assert (successor.state, successor.attempt) == ("waiting", 1)
    assert successor.not_before is not None
    assert timedelta(seconds=25) < successor.not_before - timezone.now() <= timedelta(seconds=30)

    assert stage.admit() == 1  # `behind`, not the successor
    assert states([successor, behind]) == ["waiting", "admitted"]
    assert again(successor).reason_code == "unschedulable"

    admission.release(behind.pk, "stopped")
    Claim.objects.filter(pk=successor.pk).update(not_before=timezone.now())
    third = stage.request(4)
    assert stage.admit() == 1
    assert states([successor, third]) == ["admitted", "waiting"]


def test_back_off_doubles_up_to_ten_minutes() -> None:
    assert [admission.back_off(n).total_seconds() for n in range(7)] == [30, 60, 120, 240, 480, 600, 600]
    assert admission.back_off(30_000).total_seconds() == 600


@pytest.mark.parametrize(
    ("asked", "code", "field"),
    [
        ({"gpus": 5}, "quota_exceeded", "gpus"),
        ({"gpus": 0}, "gpus_required", "gpus"),
        ({"cpu_millicores": 64_001}, "no_node_has_cpu", "cpu"),
        ({"memory_mib": 513 * 1024}, "no_node_has_memory", "memory_mib"),
    ],
)
def test_a_request_that_can_never_start_is_refused(
    stage: Stage, asked: dict[str, Any], code: str, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        stage.request(**({"gpus": 1} | asked))
    assert refused.value.code == code
    assert refused.value.hint
    assert list(refused.value.fields) == [field]
    assert not Claim.objects.exists()


def test_a_request_above_the_limit_per_person_is_refused(stage: Stage) -> None:
    TenantLimit.objects.create(tenant=stage.cast.demo, person_gpus=1)
    with pytest.raises(Invalid) as refused:
        stage.request(2)
    assert refused.value.code == "above_person_gpus"
    assert list(refused.value.fields) == ["gpus"]
    assert again(stage.request(1)).state == "waiting"


def test_larger_than_every_node_is_refused_even_within_the_quota(stage: Stage) -> None:
    stage.quota(8)
    with pytest.raises(Invalid, match="no node of this pool has more than 4"):
        stage.request(5)


def test_a_node_that_is_down_still_counts_for_what_fits(stage: Stage) -> None:
    Node.objects.update(ready=False)
    assert again(stage.request(4)).state == "waiting"


def test_before_any_node_was_seen_a_request_waits(stage: Stage) -> None:
    Node.objects.all().delete()
    claim = stage.request(4)
    stage.admit()
    assert again(claim).reason_code == "no_node_ready"


def test_without_a_quota_row_a_tenant_has_nothing_of_a_pool(stage: Stage) -> None:
    Quota.objects.filter(tenant=stage.cast.second).delete()
    with pytest.raises(Invalid, match="no GPUs in this pool"):
        stage.request(1, by=stage.cast.carol)


def test_a_pool_without_gpus_needs_no_quota_and_gives_no_gpus(stage: Stage) -> None:
    cpu = stage.cpu_pool()
    assert stage.running(0, pool=cpu).node == "cpu-1"
    with pytest.raises(Invalid, match="no GPUs"):
        stage.request(1, pool=cpu)


def test_a_holder_has_one_live_claim(stage: Stage) -> None:
    claim = stage.request()
    with pytest.raises(Conflict):
        stage.request(holder_id=claim.holder_id)
    admission.release(claim.pk, "withdrawn")
    stage.request(holder_id=claim.holder_id)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"state": "admitted"},
        {"node": "gpu-1"},
        {"released_at": timezone.now()},
        {"state": "released"},
    ],
)
def test_the_database_refuses_states_that_make_no_sense(stage: Stage, nonsense: dict[str, Any]) -> None:
    claim = stage.request()
    with pytest.raises(IntegrityError), transaction.atomic():
        Claim.objects.filter(pk=claim.pk).update(**nonsense)


def test_an_unproven_end_keeps_the_units_until_an_admin_confirms_it(stage: Stage) -> None:
    run = stage.running(4)
    assert admission.confirm_end(stage.cast.admin, run) is False  # its pod is in sight
    assert admission.flag_unproven_end(run.pk) is True
    assert admission.flag_unproven_end(run.pk) is False
    waiting = stage.request(4)
    assert stage.admit() == 0

    with pytest.raises(NotAllowed):
        admission.confirm_end(stage.cast.alice, run)
    assert admission.confirm_end(stage.cast.admin, run) is True
    assert admission.confirm_end(stage.cast.admin, run) is False
    assert stage.admit() == 1
    assert states([run, waiting]) == ["released", "admitted"]
    assert AuditEntry.objects.filter(action="claim.confirm_end", target_id=str(run.pk)).count() == 1
