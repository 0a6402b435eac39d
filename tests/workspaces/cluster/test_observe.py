"""Observation of raw objects: how far a start got, its trouble, and whether its end is proven."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from clusters.pods.ends import end_proven
from tests.workspaces.builders import RUN, RUNNING, claim, event, pod, service, waiting
from workloads.pods.troubles import Outcome, Snapshot, Trouble, rejected
from workspaces.cluster.observe import Observation, observe
from workspaces.models import STEPS, Step

NOT_READ_YET = "failed to sync secret cache: timed out waiting for the condition"
OUT_OF_MEMORY = {
    "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
    "restartCount": 3,
}
FIRST_USE = {"local-fast": "WaitForFirstConsumer", "net-shared": "Immediate"}
READY = {"PodScheduled": "True", "PodReadyToStartContainers": "True", "Ready": "True"}


def seen(**objects: object) -> Snapshot:
    values: dict[str, object] = {
        "volume_claims": [claim()],
        "binding_modes": FIRST_USE,
    }
    return Snapshot(**(values | objects))  # type: ignore[arg-type]


def observed(**objects: object) -> Observation:
    return observe(seen(**objects), run=str(RUN), claims_wanted=1)


def current_step(**objects: object) -> Step:
    return STEPS[observed(**objects).done]


@pytest.mark.parametrize(("until", "code"), [("00:00:40", None), ("00:01:00", "probe_failing")])
def test_a_program_that_does_not_answer_for_a_minute_is_a_trouble(until: str, code: str | None) -> None:
    failing = event("Unhealthy", "Pod", "Readiness probe failed: connection refused", f"2026-01-01T{until}Z")
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    stuck = pod(container=RUNNING, status={"conditions": [unready]})
    first = {"firstTimestamp": "2025-12-31T00:00:00Z"}  # before it was ready once
    found = observed(pods=[stuck], events=[failing | first]).trouble
    assert (found and found.diagnosis.code) == code


def trouble(**objects: object) -> Trouble:
    found = observed(**objects).trouble
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("objects", "step"),
    [
        ({"volume_claims": []}, Step.DISK),
        ({"volume_claims": [claim("Pending")]}, Step.DISK),
        ({"volume_claims": [claim("Pending", "local-fast")]}, Step.CONTAINER),  # binds on first use
        ({}, Step.CONTAINER),
        ({"pods": [pod(run=UUID(int=7))]}, Step.CONTAINER),  # of an earlier run
        ({"pods": [pod(node="")]}, Step.SCHEDULED),
        ({"pods": [pod()]}, Step.IMAGE),
        ({"pods": [pod(container=waiting("ContainerCreating", imageID="sha256:1"))]}, Step.MOUNTS),
        ({"pods": [pod(container=RUNNING)]}, Step.STARTED),
        ({"pods": [pod(container=RUNNING, conditions=READY)]}, Step.ENDPOINT),
        ({"pods": [pod(container=RUNNING, conditions=READY)], "service": service("")}, Step.ENDPOINT),
    ],
)
def test_a_step_is_under_way_until_its_evidence_exists(objects: dict[str, object], step: Step) -> None:
    assert current_step(**objects) == step


def test_all_ten_steps_have_evidence_when_it_is_ready() -> None:
    there = observed(pods=[pod(container=RUNNING, conditions=READY)], service=service())
    assert there.done == len(STEPS)
    assert (there.host, there.jupyter_port, there.ssh_port) == ("127.64.0.5", 8888, 22)
    assert there.node == "gpu-1"


@pytest.mark.parametrize(
    ("status", "outcome", "after_seconds", "code"),
    [
        (waiting("InvalidImageName", "why"), Outcome.FAIL, 0, None),
        (waiting("ErrImageNeverPull", "why"), Outcome.FAIL, 0, None),
        (waiting("CreateContainerConfigError", "why"), Outcome.FAIL, 0, None),
        (waiting("CreateContainerConfigError", NOT_READ_YET), Outcome.FAIL, 300, "start_failed"),
        (waiting("ErrImagePull", "why"), Outcome.FAIL, 300, None),
        (waiting("ImagePullBackOff", "why"), Outcome.FAIL, 300, None),
        (waiting("CrashLoopBackOff", "why"), Outcome.FAIL, 300, None),
        (waiting("CrashLoopBackOff", "back-off", **OUT_OF_MEMORY), Outcome.FAIL, 300, "out_of_memory"),
    ],
)
def test_a_container_that_cannot_start_fails_at_once_or_after_five_minutes(
    status: dict[str, Any], outcome: Outcome, after_seconds: int, code: str | None
) -> None:
    found = trouble(pods=[pod(container=status)])
    assert (found.outcome, found.after_seconds) == (outcome, after_seconds)
    assert code in (None, found.diagnosis.code)


def test_a_pull_is_no_trouble_however_long_it_takes() -> None:
    assert observed(pods=[pod(container=waiting("ContainerCreating"))]).trouble is None


def test_a_pod_without_a_node_is_sent_back_after_two_minutes() -> None:
    text = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
    found = trouble(pods=[pod(node="", status={"conditions": [why]})])
    assert (found.outcome, found.after_seconds, found.diagnosis.known) == (Outcome.REQUEUE, 120, True)


def test_a_back_off_is_explained_by_the_failure_before_it() -> None:
    why = 'Failed to pull image "example/none:1": rpc error: code = NotFound desc = not found'
    found = trouble(
        pods=[pod(container=waiting("ImagePullBackOff", 'Back-off pulling image "example/none:1"'))],
        events=[event("Failed", "Pod", why), event("Failed", "Pod", "Error: ErrImagePull")],
    )
    assert found.diagnosis.code == "image_not_found"
    assert found.diagnosis.data["raw"] == why  # the cluster's own words stay at hand


def test_a_mount_that_is_tried_again_is_reported_but_never_final() -> None:
    text = 'MountVolume.SetUp failed for volume "home" : cannot read superblock'
    found = trouble(
        pods=[pod(container=waiting("ContainerCreating"))], events=[event("FailedMount", "Pod", text)]
    )
    assert found.outcome == Outcome.WAIT


def test_a_mount_message_of_a_restarted_kubelet_is_no_trouble() -> None:
    """Message seen about pods whose mounts were all in place."""
    text = 'MountVolume.SetUp failed for volume "start" : object "berth-lab"/"ws-1" not registered'
    there = observed(
        pods=[pod(container=waiting("ContainerCreating"))], events=[event("FailedMount", "Pod", text)]
    )
    assert there.trouble is None


def test_what_a_start_met_is_no_trouble_of_a_container_that_has_ended() -> None:
    """A kubelet leaves the pod's phase at Running until nothing of it is left."""
    ended = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}, "restartCount": 0}
    met = [event("FailedCreatePodSandBox", "Pod", "Failed to create pod sandbox: plugin is not initialized")]
    assert observed(pods=[pod(container=ended)], events=met).trouble is None
    assert observed(pods=[pod(container=waiting("ContainerCreating"))], events=met).trouble is not None


def test_a_missing_storage_class_is_explained() -> None:
    text = 'storageclass.storage.k8s.io "absent" not found'
    events = [event("ProvisioningFailed", "PersistentVolumeClaim", text)]
    assert trouble(volume_claims=[claim("Pending", "absent")], events=events).diagnosis.known


def test_a_terminal_phase_or_a_deletion_without_a_node_proves_the_end_of_a_pod() -> None:
    going: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert end_proven(pod(phase="Failed"))
    assert end_proven(pod(phase="Succeeded", **going))
    assert end_proven(pod(node="", **going))
    assert not end_proven(pod(node=""))
    assert not end_proven(pod(phase="Running", **going))
    assert not end_proven(pod(phase="Pending", **going))


def test_a_pod_that_its_node_rejected_is_tried_again_then_sent_back() -> None:
    status = {"reason": "UnexpectedAdmissionError", "message": "no healthy devices"}
    refused = pod(phase="Failed", status=status)
    assert rejected(refused)
    assert trouble(pods=[refused]).outcome == Outcome.REQUEUE
    assert not rejected(pod(phase="Failed", status={"reason": "Evicted"}))


def node(status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
    return {"status": {"conditions": [{"type": "MemoryPressure", "status": "Unknown"}, ready]}}


LOST_NODE = node("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
UNWELL_NODE = node("False", "KubeletNotReady", "container runtime is down")


@pytest.mark.parametrize(
    ("container", "node", "code"),
    [
        (RUNNING, LOST_NODE, "node_lost"),
        (waiting("CrashLoopBackOff"), LOST_NODE, "node_lost"),
        (RUNNING, UNWELL_NODE, "node_unwell"),
        (RUNNING, node("True"), None),
    ],
)
def test_a_node_that_is_not_ready_comes_before_the_last_status_of_its_pod(
    container: dict[str, object], node: dict[str, Any], code: str | None
) -> None:
    there = [pod(container=container, conditions=READY | {"Ready": "False"})]
    found = observed(pods=there, service=service(), node=node).trouble
    assert (found and (found.diagnosis.code, found.outcome)) == (code and (code, Outcome.WAIT))


def test_an_end_is_explained_by_the_message_of_the_node() -> None:
    text = "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. "
    status = {"reason": "Evicted", "message": text}
    found = observed(pods=[pod(phase="Failed", container=RUNNING, status=status)])
    assert found.ended == "Evicted"
    assert found.explained_end is not None
    assert found.explained_end.code == "temporary_disk_full"


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
def test_an_eviction_is_recognized_whatever_the_kubelet_lost(told: bool, taken_back: bool) -> None:
    there = observed(pods=[evicted(told=told, taken_back=taken_back)])
    assert there.ended == "Evicted" and there.explained_end is not None
    assert (there.explained_end.code, there.explained_end.data["resource"]) == ("evicted", "memory")


def test_an_end_without_a_message_has_its_reason_alone() -> None:
    found = observed(pods=[pod(phase="Failed", status={"reason": "Deleted"})])
    assert (found.ended, found.explained_end) == ("Deleted", None)


def test_a_service_inside_the_cluster_has_its_own_address() -> None:
    inside = service()
    inside["spec"] |= {"type": "ClusterIP", "clusterIP": "10.96.0.7"}
    there = observed(pods=[pod(container=RUNNING, conditions=READY)], service=inside)
    assert (there.host, there.jupyter_port) == ("10.96.0.7", 8888)


def offering(*, ip: str = "10.42.0.9") -> dict[str, object]:
    """Return a ready pod that offers Jupyter."""
    there = pod(container=RUNNING, conditions=READY, status={"podIP": ip, "hostIP": "192.0.2.1"})
    there["spec"]["containers"] = [
        {"name": "workspace", "ports": [{"name": "jupyter", "containerPort": 8888}]}
    ]
    return there


def test_where_ssh_alone_is_published_jupyter_is_at_the_pods_own_address() -> None:
    at_nodes = service()
    at_nodes["spec"] = {"type": "NodePort", "ports": [{"name": "ssh", "port": 22, "nodePort": 30022}]}
    there = observed(pods=[offering()], service=at_nodes)
    assert (there.done, there.host, there.ssh_port) == (len(STEPS), "192.0.2.1", 30022)
    assert (there.jupyter_host, there.jupyter_port) == ("10.42.0.9", 8888)


def test_what_is_published_is_not_at_the_pods_address() -> None:
    there = observed(pods=[offering()], service=service())
    assert (there.host, there.jupyter_host, there.jupyter_port) == ("127.64.0.5", "", 8888)


def test_an_image_without_jupyter_has_no_address_of_it() -> None:
    bare = service()
    bare["spec"]["ports"] = [{"name": "ssh", "port": 22}]
    there = observed(
        pods=[pod(container=RUNNING, conditions=READY, status={"podIP": "10.42.0.9"})], service=bare
    )
    assert (there.jupyter_host, there.jupyter_port) == ("", None)
