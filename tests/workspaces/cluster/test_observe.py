"""Observation of raw objects: how far a start got, its trouble, and whether its end is proven."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workspaces.builders import (
    RUN,
    RUNNING,
    claim,
    event,
    pod,
    service,
    stateful_set,
    waiting,
)
from workspaces.cluster.observe import Observation, Outcome, Seen, end_proven, observe, rejected
from workspaces.models import STEPS, Step

FIRST_USE = {"local-fast": "WaitForFirstConsumer", "net-shared": "Immediate"}
READY = {"PodScheduled": "True", "PodReadyToStartContainers": "True", "Ready": "True"}


def seen(**objects: object) -> Seen:
    values: dict[str, object] = {
        "volume_claims": [claim()],
        "stateful_set": stateful_set(),
        "binding_modes": FIRST_USE,
    }
    return Seen(**(values | objects))  # type: ignore[arg-type]


def observed(**objects: object) -> Observation:
    return observe(seen(**objects), run=str(RUN), claims_wanted=1)


@pytest.mark.parametrize(
    ("objects", "step"),
    [
        ({"volume_claims": []}, Step.DISK),
        ({"volume_claims": [claim("Pending")]}, Step.DISK),
        ({"stateful_set": None}, Step.CONTAINER),
        ({"stateful_set": stateful_set(replicas=0)}, Step.CONTAINER),
        ({}, Step.SCHEDULED),
        ({"pods": [pod(node="")]}, Step.SCHEDULED),
        ({"pods": [pod()]}, Step.IMAGE),
        ({"pods": [pod(container=waiting("ContainerCreating", imageID="sha256:1"))]}, Step.MOUNTS),
        ({"pods": [pod(container=RUNNING)]}, Step.STARTED),
        ({"pods": [pod(container=RUNNING, conditions=READY)]}, Step.ENDPOINT),
        ({"pods": [pod(container=RUNNING, conditions=READY)], "service": service("")}, Step.ENDPOINT),
    ],
)
def test_a_step_is_under_way_until_its_evidence_exists(objects: dict[str, object], step: Step) -> None:
    assert observed(**objects).step == step


def test_all_ten_steps_have_evidence_when_it_is_ready() -> None:
    there = observed(pods=[pod(container=RUNNING, conditions=READY)], service=service())
    assert there.done == len(STEPS)
    assert (there.host, there.jupyter_port, there.ssh_port) == ("127.64.0.5", 8888, 22)
    assert there.node == "gpu-1"


def test_a_class_that_binds_on_first_use_counts_as_accepted() -> None:
    assert observed(volume_claims=[claim("Pending", "local-fast")]).step == Step.SCHEDULED


def test_the_stateful_set_of_an_earlier_run_is_no_evidence() -> None:
    other = stateful_set(run=RUN.__class__(int=7))
    assert observed(stateful_set=other).step == Step.CONTAINER


def test_a_stateful_set_that_is_going_away_is_no_evidence() -> None:
    going = stateful_set(deletionTimestamp="2026-01-01T00:00:00Z")
    assert observed(stateful_set=going).step == Step.CONTAINER


def test_no_node_takes_it_sends_it_back_after_two_minutes() -> None:
    text = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    unplaced = pod(node="")
    unplaced["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
    ]
    trouble = observed(pods=[unplaced]).trouble
    assert trouble is not None
    assert (trouble.outcome, trouble.after_seconds) == (Outcome.REQUEUE, 120)
    assert trouble.diagnosis.known


@pytest.mark.parametrize("reason", ["InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"])
def test_what_cannot_heal_fails_at_once(reason: str) -> None:
    trouble = observed(pods=[pod(container=waiting(reason, "why"))]).trouble
    assert trouble is not None
    assert (trouble.outcome, trouble.after_seconds) == (Outcome.FAIL, 0)


def test_settings_that_the_node_has_not_read_yet_are_waited_for() -> None:
    late = waiting(
        "CreateContainerConfigError", "failed to sync secret cache: timed out waiting for the condition"
    )
    trouble = observed(pods=[pod(container=late)]).trouble
    assert trouble is not None
    assert (trouble.outcome, trouble.after_seconds) == (Outcome.FAIL, 300)
    assert trouble.diagnosis.code == "start_failed"


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"])
def test_what_may_heal_fails_after_five_minutes(reason: str) -> None:
    trouble = observed(pods=[pod(container=waiting(reason, "why"))]).trouble
    assert trouble is not None
    assert (trouble.outcome, trouble.after_seconds) == (Outcome.FAIL, 300)


def test_pulling_is_no_trouble_however_long() -> None:
    assert observed(pods=[pod(container=waiting("ContainerCreating"))]).trouble is None


def test_a_back_off_is_explained_by_the_failure_before_it() -> None:
    why = 'Failed to pull image "example/none:1": rpc error: code = NotFound desc = not found'
    there = observed(
        pods=[pod(container=waiting("ImagePullBackOff", 'Back-off pulling image "example/none:1"'))],
        events=[event("Failed", "Pod", why), event("Failed", "Pod", "Error: ErrImagePull")],
    )
    assert there.trouble is not None
    assert there.trouble.diagnosis.code == "image_not_found"
    assert there.trouble.diagnosis.data["raw"] == why  # the cluster's own words stay at hand


def test_a_crash_loop_is_explained_by_how_it_ended() -> None:
    last = {"lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}, "restartCount": 3}
    there = observed(pods=[pod(container=waiting("CrashLoopBackOff", "back-off 40s restarting", **last))])
    assert there.trouble is not None
    assert there.trouble.diagnosis.code == "out_of_memory"


def test_a_mount_that_is_tried_again_is_told_but_never_final() -> None:
    there = observed(
        pods=[pod(container=waiting("ContainerCreating"))],
        events=[
            event("FailedMount", "Pod", 'MountVolume.SetUp failed for volume "home" : cannot read superblock')
        ],
    )
    assert there.trouble is not None
    assert there.trouble.outcome == Outcome.WAIT


def test_what_a_kubelet_says_of_a_pod_that_it_takes_up_again_is_no_fault_of_its_volumes() -> None:
    """Message seen when a kubelet restarted, about pods whose mounts were all in place."""
    text = 'MountVolume.SetUp failed for volume "start" : object "berth-lab"/"ws-1" not registered'
    there = observed(
        pods=[pod(container=waiting("ContainerCreating"))], events=[event("FailedMount", "Pod", text)]
    )
    assert there.trouble is None


def test_a_missing_storage_class_is_told() -> None:
    there = observed(
        volume_claims=[claim("Pending", "absent")],
        events=[
            event(
                "ProvisioningFailed",
                "PersistentVolumeClaim",
                'storageclass.storage.k8s.io "absent" not found',
            )
        ],
    )
    assert there.trouble is not None
    assert there.trouble.diagnosis.known


def test_the_end_of_a_pod_is_proven_by_a_terminal_phase_or_by_never_having_had_a_node() -> None:
    going: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert end_proven(pod(phase="Failed"))
    assert end_proven(pod(phase="Succeeded", **going))
    assert end_proven(pod(node="", **going))
    assert not end_proven(pod(node=""))
    assert not end_proven(pod(phase="Running", **going))
    assert not end_proven(pod(phase="Pending", **going))


def test_a_pod_that_ended_by_itself_says_why() -> None:
    there = observed(pods=[pod(phase="Failed", status={"reason": "Evicted", "message": "low on disk"})])
    assert there.ended == "Evicted"


def test_a_pod_that_its_node_rejected_is_tried_again_then_sent_back() -> None:
    refused = pod(
        phase="Failed", status={"reason": "UnexpectedAdmissionError", "message": "no healthy devices"}
    )
    assert rejected(refused)
    trouble = observed(pods=[refused]).trouble
    assert trouble is not None
    assert trouble.outcome == Outcome.REQUEUE
    assert not rejected(pod(phase="Failed", status={"reason": "Evicted"}))


LOST_NODE = {
    "status": {
        "conditions": [
            {"type": "MemoryPressure", "status": "Unknown"},
            {
                "type": "Ready",
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
            },
        ]
    }
}


@pytest.mark.parametrize("container", [RUNNING, waiting("CrashLoopBackOff")])
def test_a_lost_node_comes_before_whatever_its_pod_last_said(container: dict[str, object]) -> None:
    there = [pod(container=container, conditions=READY | {"Ready": "False"})]
    trouble = observed(pods=there, service=service(), node=LOST_NODE).trouble
    assert trouble is not None
    assert trouble.diagnosis.code == "node_lost"
    assert trouble.outcome == Outcome.WAIT


def test_a_node_that_says_what_ails_it_is_not_lost() -> None:
    ails = {
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": "container runtime is down",
    }
    there = [pod(container=RUNNING, conditions=READY | {"Ready": "False"})]
    trouble = observed(pods=there, service=service(), node={"status": {"conditions": [ails]}}).trouble
    assert trouble is not None
    assert trouble.diagnosis.code == "node_unwell"


def test_a_pod_that_is_not_ready_on_a_node_that_answers_has_no_lost_node() -> None:
    answers = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    there = [pod(container=RUNNING, conditions=READY | {"Ready": "False"})]
    assert observed(pods=there, service=service(), node=answers).trouble is None


def test_an_end_is_explained_by_what_the_node_said_of_it() -> None:
    status = {
        "reason": "Evicted",
        "message": "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. ",
    }
    found = observed(pods=[pod(phase="Failed", container=RUNNING, status=status)])
    assert found.ended == "Evicted"
    assert found.end_told is not None
    assert found.end_told.code == "temporary_disk_full"


EVICTED = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 42Mi."


def evicted(*, told: bool, taken_back: bool) -> dict[str, Any]:
    """Evicted pod. The kubelet may lose the reason in the status; the StatefulSet's controller then deletes the pod."""
    why = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": EVICTED}
    status = {"conditions": [why]} | ({"reason": "Evicted", "message": EVICTED} if told else {})
    body = pod(phase="Failed", status=status)
    if taken_back:
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return body


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("taken_back", [True, False])
def test_an_eviction_is_told_as_one_whatever_else_befell_the_pod(told: bool, taken_back: bool) -> None:
    there = observed(pods=[evicted(told=told, taken_back=taken_back)])
    assert there.ended == "Evicted" and there.end_told is not None
    assert (there.end_told.code, there.end_told.data["resource"]) == ("evicted", "memory")


def test_an_end_of_which_the_node_said_nothing_has_its_one_word_alone() -> None:
    found = observed(pods=[pod(phase="Failed", status={"reason": "Deleted"})])
    assert (found.ended, found.end_told) == ("Deleted", None)


def test_a_service_inside_the_cluster_has_its_own_address() -> None:
    inside = service()
    inside["spec"] |= {"type": "ClusterIP", "clusterIP": "10.96.0.7"}
    there = observed(pods=[pod(container=RUNNING, conditions=READY)], service=inside)
    assert (there.host, there.jupyter_port) == ("10.96.0.7", 8888)
