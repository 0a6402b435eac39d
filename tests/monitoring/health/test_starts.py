"""Nodes on which pods do not start: out until one starts there, or for a while."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from clusters.models import Node
from clusters.watch.watching import Changed
from monitoring.health import starts
from monitoring.models import FailedStart, Trouble
from tests.monitoring.health.ward import NODE, Ward, open_codes, story

pytestmark = pytest.mark.django_db

NO_ADDRESS = (
    'Failed to create pod sandbox: plugin type="calico" failed (add): no IP addresses available in range set'
)
SOCKET = "Failed to create pod sandbox: Error while dialing: dial unix containerd.sock: refused"
CNI = "network is not ready: cni plugin not initialized"
CODE = "network_plugin_down"


def event(pod: str, text: str = NO_ADDRESS, *, count: int = 1, **values: Any) -> dict[str, Any]:
    return {
        "kind": "Event",
        "reason": "FailedCreatePodSandBox",
        "type": "Warning",
        "message": text,
        "count": count,
        "involvedObject": {"kind": "Pod", "namespace": "berth-demo", "name": pod},
        "source": {"component": "kubelet", "host": NODE},
    } | values


def pod(name: str, state: str = "running") -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"namespace": "berth-demo", "name": name},
        "spec": {"nodeName": NODE},
        "status": {"containerStatuses": [{"state": {state: {}}}]},
    }


def tell(ward: Ward, *bodies: dict[str, Any]) -> None:
    changes = [Changed("MODIFIED", body) for body in bodies]
    starts.on_objects_changed(cluster=ward.cluster, changes=changes)


def out_code() -> str:
    return Node.objects.get(name=NODE).out_code


@pytest.mark.parametrize(("text", "code"), [(NO_ADDRESS, CODE), (SOCKET, "node_unwell"), (CNI, CODE)])
def test_a_node_is_out_when_several_pods_do_not_start_there(ward: Ward, text: str, code: str) -> None:
    tell(ward, event("ws-a-0", text))
    assert out_code() == ""
    tell(ward, event("ws-b-0", text))
    assert out_code() == code and open_codes() == [code]


def test_an_event_about_nothing_is_left_alone(ward: Ward) -> None:
    tell(ward, *(event("ws-a-0", reason=reason, involvedObject=None) for reason in starts.VOLUME_REASONS))
    assert not FailedStart.objects.exists()


def test_a_message_with_nul_is_stored(ward: Ward) -> None:
    tell(ward, event("ws-a-0", f"{NO_ADDRESS}\0", count=3))
    assert out_code() == CODE


def test_a_node_is_out_when_one_pod_does_not_start_several_times(ward: Ward) -> None:
    tell(ward, event("ws-a-0", count=2))
    assert out_code() == ""
    tell(ward, event("ws-a-0", count=3))
    assert out_code() == CODE


def test_a_node_is_back_when_a_pod_starts_there(ward: Ward) -> None:
    tell(ward, event("ws-a-0", count=3))
    tell(ward, pod("ws-c-0", "waiting"))
    assert out_code() == CODE
    tell(ward, pod("ws-c-0"))
    assert out_code() == "" and not FailedStart.objects.exists()


def test_a_node_is_back_after_some_time_for_another_try(ward: Ward) -> None:
    tell(ward, event("ws-a-0", count=3))
    FailedStart.objects.update(last_at=timezone.now() - timedelta(minutes=11))
    ward.judge()
    assert out_code() == ""


def test_events_that_are_no_fault_of_the_node_take_nothing_out(ward: Ward) -> None:
    own = event("ws-a-0", 'Failed to create pod sandbox: no runtime for "nvidia" is configured', count=9)
    tell(ward, own, event("ws-b-0", reason="BackOff", count=9), event("ws-c-0", reason="Failed", count=9))
    assert out_code() == ""


def test_people_who_run_there_are_not_notified(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    tell(ward, event("ws-a-0", count=3))
    assert story(alices) == []


def test_an_unmounted_volume_is_a_trouble_until_its_pod_starts(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    name = f"{alices.object_name}-0"
    text = "Unable to attach or mount volumes: unmounted volumes=[home]: timed out waiting for the condition"
    # The controller that attaches names no node: the pod's row has it.
    about = {"kind": "Pod", "namespace": alices.tenant.namespace, "name": name}
    tell(ward, event(name, text, reason="FailedAttachVolume", source={}, involvedObject=about))
    [trouble] = Trouble.objects.filter(ended_at=None)
    assert (trouble.about, trouble.subject, trouble.takes_out) == (
        "volume", f"{alices.tenant.namespace}/{name}", False,
    )  # fmt: skip
    assert story(alices) == []  # its start reports it already
    started = pod(name)
    started["metadata"]["namespace"] = alices.tenant.namespace
    tell(ward, started)
    assert open_codes() == []


def test_passing_messages_of_a_restarted_kubelet_are_no_trouble(ward: Ward) -> None:
    text = 'MountVolume.SetUp failed for volume "start" : object "berth-lab"/"ws-1" not registered'
    tell(ward, event("ws-1-0", text, reason="FailedMount"))
    assert open_codes() == []


def test_an_unmounted_volume_of_another_owners_pod_is_no_trouble(ward: Ward) -> None:
    text = 'MountVolume.SetUp failed for volume "s" : secret "typo" not found'
    tell(ward, event("their-app-0", text, reason="FailedMount", count=9))
    assert open_codes() == []
    tell(ward, event("their-app-0", count=3))  # a problem of the node affects everybody
    assert open_codes() == [CODE]


def test_a_pod_that_moved_with_its_volume_may_have_a_trouble_on_both_nodes(ward: Ward) -> None:
    mount: dict[str, Any] = {"reason": "FailedMount", "message": "MountVolume.SetUp failed: timed out"}
    name = f"ws-{uuid4()}-0"
    tell(ward, event(name, **mount))
    tell(ward, event(name, **mount | {"source": {"host": "gpu-2"}}))
    assert sorted(Trouble.objects.filter(ended_at=None).values_list("node", flat=True)) == [NODE, "gpu-2"]
