"""Judging of a node: problems become rows, the queue avoids what is out, and people there are notified."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError
from django.utils import timezone

from accounts.notices.models import Notice
from clusters import signals
from clusters.models import Cluster, Gpu, Node, PodUsage
from monitoring import enqueue
from monitoring.health import judging, notifying, signs
from monitoring.models import AgentState, Trouble
from quotas import holders
from quotas.models import Claim
from tests.monitoring.health.ward import NODE, Ward, open_codes, story
from workspaces.models import Ending, Workspace
from workspaces.state import runs
from workspaces.state import story as words
from workspaces.state.live import changing

pytestmark = pytest.mark.django_db


@pytest.fixture
def heard() -> Iterator[list[Cluster]]:
    told: list[Cluster] = []

    def hear(*, cluster: Cluster, **_: Any) -> None:
        told.append(cluster)

    signals.capacity_changed.connect(hear, weak=False, dispatch_uid="test.heard")
    yield told
    signals.capacity_changed.disconnect(dispatch_uid="test.heard")


def again(workspace: Workspace) -> Workspace:
    return Workspace.objects.get(pk=workspace.pk)


def test_a_gpu_fault_is_one_trouble_that_takes_the_gpu_out_until_it_ends(
    ward: Ward, heard: list[Cluster], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        ward.sample(2, state="lost")
        ward.judge()
    [trouble] = Trouble.objects.all()
    assert (trouble.about, trouble.subject, trouble.node, trouble.code) == ("gpu", "GPU-2", NODE, "gpu_lost")
    assert trouble.takes_out and trouble.ended_at is None
    assert [ward.gpu(index).out_code for index in range(4)] == ["", "", "gpu_lost", ""]
    assert heard == [ward.cluster]  # once: the queue is examined again
    with django_capture_on_commit_callbacks(execute=True):
        ward.sample(2, state="ok")
    assert open_codes() == []
    assert ward.gpu(2).out_code == ""
    assert heard == [ward.cluster] * 2


def test_a_driver_problem_takes_out_the_gpus_and_not_the_node(ward: Ward) -> None:
    ward.agent("uvm_missing")
    node = Node.objects.get(name=NODE)
    assert (node.out_code, node.gpus_out_code) == ("", "gpu_uvm_missing")
    ward.agent()
    assert not Node.objects.get(name=NODE).gpus_out_code


def test_only_the_holder_of_a_gpu_is_notified_of_its_fault(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    carols = ward.on_gpu(2, ward.cast.carol)
    ward.xid(1, 79)
    assert story(alices) == [("gpu_lost", "error")]
    assert again(alices).message_code == "gpu_lost"
    assert story(carols) == [] and again(carols).message_code == "ready"
    [notice] = Notice.objects.filter(kind="health")
    assert (notice.user, notice.kind, notice.subject_id) == (ward.cast.alice.user, "health", alices.pk)
    event = alices.events.order_by("number").last()
    assert event is not None and event.data == {"xid": 79}  # neither the node nor another GPU
    ward.judge()  # once, however often it is judged
    assert len(story(alices)) == 1 and Notice.objects.filter(kind="health").count() == 1


def test_the_message_shows_a_problem_while_it_lasts_and_an_event_its_end(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    ward.xid(1, 79)
    ward.node(system={"bootID": "boot-2"})
    assert story(alices) == [("gpu_lost", "error"), ("ailment_over", "info")]
    assert again(alices).message_code == "ready"
    last = alices.events.order_by("number").last()
    assert last is not None
    assert words.sentence(last.code, last.data) == "Resolved: " + words.sentence("gpu_lost", {})


def test_the_message_shows_the_gravest_problem(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    ward.node(conditions={"DiskPressure": {"status": "True"}})
    assert again(alices).message_code == "node_short_of_disk"
    ward.sample(1, state="lost")
    assert again(alices).message_code == "gpu_lost"


def test_a_programs_fault_is_reported_to_its_only_holder_and_not_to_the_next(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    ward.xid(1, 13)
    assert story(alices) == [("gpu_program_fault", "warning")]
    assert ward.gpu(1).out_code == ""
    PodUsage.objects.all().delete()
    gpu = ward.gpu(1)
    gpu.held_by = []
    gpu.save()
    carols = ward.on_gpu(1, ward.cast.carol, started_at=timezone.now())
    ward.judge()
    assert story(carols) == []


def test_on_a_shared_gpu_a_programs_fault_is_reported_to_nobody_and_a_broken_gpu_to_all(ward: Ward) -> None:
    alices, carols = ward.on_gpu(1, ward.cast.alice), ward.on_gpu(1, ward.cast.carol)
    ward.xid(1, 31)
    assert story(alices) == story(carols) == []
    ward.xid(1, 48)
    assert story(alices) == story(carols) == [("gpu_memory_damaged", "error")]


def test_a_contained_error_is_reported_to_its_holder_and_a_due_repair_only_to_admins(
    ward: Ward,
) -> None:
    alices, carols = ward.on_gpu(1, ward.cast.alice), ward.on_gpu(2, ward.cast.carol)
    ward.xid(1, 94)
    ward.sample(2, row_remap_pending=True)
    assert story(alices) == [("gpu_repair_due", "warning")]
    assert story(carols) == []


def test_containers_that_lost_their_devices_are_well_after_a_restart(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    without_gpus = ward.on_gpu(2, ward.cast.bob, name="cpu", units=0)
    ward.agent("devices_denied")
    assert story(alices) == [("gpu_vanished", "warning")]
    assert story(without_gpus) == []
    assert not Node.objects.get(name=NODE).gpus_out_code  # new workspaces get a GPU
    late = ward.on_gpu(3, ward.cast.carol, started_at=Trouble.objects.get().since.replace(year=2100))
    ward.judge()
    assert story(late) == []


def test_only_admins_are_notified_of_a_lost_node(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    ward.node(ready=False, conditions={"Ready": {"status": "Unknown", "message": "Kubelet stopped posting"}})
    assert open_codes() == ["node_lost"]
    assert story(alices) == []


def test_people_on_a_node_hear_of_the_problem_that_its_kubelet_reports(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    down = {"status": "False", "message": "container runtime is down"}
    ward.node(ready=False, conditions={"Ready": down})
    assert open_codes() == ["node_unwell"]
    assert story(alices) == [("node_unwell", "warning")]
    ward.node(ready=True, conditions={"Ready": {"status": "True", "message": ""}})
    assert story(alices)[1:] == [("ailment_over", "info")]


def test_the_next_run_begins_without_the_problems_of_the_last(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    ward.xid(1, 79)
    with changing(alices.pk) as row:
        runs.end(row, Ending.RESTART)
    ward.judge()
    assert again(alices).conditions == []
    assert story(alices) == [("gpu_lost", "error")]


def test_a_lost_gpu_is_back_after_a_restart_of_its_node_even_if_its_state_came_late(ward: Ward) -> None:
    ward.xid(1, 79, at=timezone.now() - timedelta(minutes=1))
    ward.sample(1, state="lost")
    ward.node(system={"bootID": "boot-2"})
    ward.sample(1, state="ok")
    ward.judge()  # and stays in use, however often it is judged
    assert open_codes() == [] and ward.gpu(1).out_code == ""


def test_trusted_errors_count_again_once_the_counter_was_reset(ward: Ward) -> None:
    Gpu.objects.filter(uuid="GPU-1").update(trusted_errors=5)
    ward.sample(1, ecc_uncorrected_since_boot=5)
    assert open_codes() == []
    ward.sample(1, ecc_uncorrected_since_boot=0)
    ward.sample(1, ecc_uncorrected_since_boot=3)
    assert open_codes() == ["gpu_memory_damaged"]


def test_a_gpu_that_moved_to_another_node_is_judged_on_both(ward: Ward) -> None:
    ward.sample(1, state="gone")
    Gpu.objects.create(cluster=ward.cluster, node="gpu-2", uuid="GPU-1", sample={"state": "lost"})
    judging.judge(ward.cluster.pk, "gpu-2")
    assert Gpu.objects.get(node="gpu-2").out_code == "gpu_lost"


def test_a_workspace_that_moved_to_another_node_hears_nothing_of_its_old_gpu(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    PodUsage.objects.update(node="gpu-2")
    Node.objects.filter(name="gpu-2").update(conditions={"DiskPressure": {"status": "True"}})
    judging.judge(ward.cluster.pk, "gpu-2")
    ward.sample(1, state="lost")
    assert [code for code, _level in story(alices)] == ["node_short_of_disk"]


def test_the_tick_ends_what_is_over_and_notifies_once_for_all_nodes(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    ward.xid(1, 13)
    Node.objects.filter(name="gpu-2").update(conditions={"DiskPressure": {"status": "True"}})
    judging.judge(ward.cluster.pk, "gpu-2")
    later = timezone.now() + timedelta(minutes=5)
    monkeypatch.setattr(timezone, "now", lambda: later)
    AgentState.objects.update(seen_at=later)
    told: list[UUID] = []

    def tell(cluster_id: UUID) -> None:
        told.append(cluster_id)
        notifying.notify_people(cluster_id)

    monkeypatch.setattr(enqueue, "tell_of_health", tell)
    signs.pass_time()
    assert open_codes() == ["node_short_of_disk"]
    assert told == [ward.cluster.pk]
    assert [code for code, _level in story(alices)] == ["gpu_program_fault", "ailment_over"]


def test_a_new_run_hears_of_a_gpu_only_once_the_agent_reports_it_as_holder(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice, started_at=timezone.now() + timedelta(seconds=1))
    ward.xid(1, 79)  # the known holder is older than her run, whose pod has the same name
    assert story(alices) == []
    Gpu.objects.filter(uuid="GPU-1").update(seen_at=timezone.now() + timedelta(seconds=2))
    ward.judge()
    assert story(alices) == [("gpu_lost", "error")]


def test_a_broken_gpu_is_out_again_when_its_node_returns_without_a_restart(ward: Ward) -> None:
    ward.xid(1, 48)
    node = Node.objects.get(name=NODE)
    Node.objects.filter(pk=node.pk).delete()
    ward.judge()
    assert open_codes() == []
    node.pk, node.out_code = None, ""
    node.save(force_insert=True)
    ward.judge()
    assert ward.gpu(1).out_code == "gpu_memory_damaged"
    ward.node(system={"bootID": "boot-2"})
    ward.judge()
    assert open_codes() == []


def test_people_are_notified_once_for_many_changed_nodes(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    Node.objects.update(conditions={"DiskPressure": {"status": "True"}})
    told: list[UUID] = []
    monkeypatch.setattr(enqueue, "tell_of_health", told.append)
    signs.on_nodes_changed(cluster=ward.cluster, names={NODE, "gpu-2"})
    assert open_codes() == ["node_short_of_disk"] * 2
    assert told == [ward.cluster.pk]


def test_a_failing_drain_does_not_stop_notifications(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    ward.node(unschedulable=True)
    until = {"until": (timezone.now() - timedelta(minutes=1)).isoformat()}
    drains = {"about": "node", "subject": NODE, "node": NODE, "code": "node_drains", "data": until}
    Trouble.objects.create(cluster=ward.cluster, takes_out=True, since=timezone.now(), **drains)

    def cannot(_claim: Claim) -> bool:
        raise OperationalError("canceling statement due to lock timeout")

    monkeypatch.setattr(holders, "drain", cannot)
    with pytest.raises(OperationalError):
        signs.pass_time()
    assert [code for code, _level in story(alices)] == ["node_drains"]
