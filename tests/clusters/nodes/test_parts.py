"""Parts of a cluster, known by the images of their pods."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.nodes.parts import PARTS, part_of, part_values, split_image

AT = "2026-01-01T00:00:00Z"


def pod(image: str, *, ready: bool = True, namespace: str = "kube-system", **status: Any) -> dict[str, Any]:
    told = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": AT}
    return {
        "kind": "Pod",
        "metadata": {
            "uid": "u-1", "namespace": namespace, "name": "p-1", "resourceVersion": "1", "creationTimestamp": AT,
            "ownerReferences": [{"kind": "DaemonSet", "name": "the-set", "controller": True}],
        },
        "spec": {"nodeName": "gpu-1", "containers": [{"name": "main", "image": image}]},
        "status": {"phase": "Running", "conditions": [told], "containerStatuses": [], **status},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("image", "part", "version"),
    [
        ("nvcr.io/nvidia/k8s-device-plugin:v0.17.1", "NVIDIA device plugin", "v0.17.1"),
        (
            "nvcr.io/nvidia/k8s/container-toolkit:v1.17.8-ubuntu20.04",
            "NVIDIA container toolkit",
            "v1.17.8-ubuntu20.04",
        ),
        ("docker.io/projecthami/hami:v2.5.0", "HAMi", "v2.5.0"),
        ("4pdosc/k8s-device-plugin:v2.3", "HAMi", "v2.3"),
        ("quay.io/cephcsi/cephcsi:v3.13.0", "Ceph CSI", "v3.13.0"),
        ("quay.io/ceph/ceph:v18.2.4", "Ceph", "v18.2.4"),
        ("registry.lab:5000/mirror/calico/node:v3.29.1@sha256:0011", "Calico", "v3.29.1"),
        ("quay.io/cilium/cilium:v1.16.1", "Cilium", "v1.16.1"),
        ("registry.k8s.io/coredns/coredns:v1.11.1", "CoreDNS", "v1.11.1"),
        ("registry.k8s.io/kube-scheduler:v1.33.1", "kube-scheduler", "v1.33.1"),
        ("quay.io/metallb/speaker:v0.14.8", "MetalLB", "v0.14.8"),
        ("nginx:1.27", None, ""),
        ("lab/not-calico-node:1", None, ""),
        ("", None, ""),
    ],
)
def test_an_image_tells_the_part_and_its_version(image: str, part: str | None, version: str) -> None:
    values = part_values(pod(image))
    assert (values.part, values.version) == (part, version) if values else part is None


def test_hamis_scheduler_is_hamis_and_keeps_the_version_of_the_one_beside_it() -> None:
    body = pod("registry.k8s.io/kube-scheduler:v1.30.2")
    body["spec"]["containers"].append({"name": "extender", "image": "projecthami/hami:v2.5.0"})
    body["metadata"]["ownerReferences"] = [
        {"kind": "ReplicaSet", "name": "hami-scheduler-7d9f", "controller": True}
    ]
    values = part_values(body)
    assert values is not None
    told = (values.part, values.version, values.scheduler_version, values.owner)
    assert told == ("HAMi", "v2.5.0", "v1.30.2", "ReplicaSet/hami-scheduler")


def test_a_tenants_pod_is_no_part_whatever_its_image_is_called() -> None:
    assert part_values(pod("evil/coredns:1", namespace="berth-demo")) is None


@pytest.mark.parametrize("change", [{"phase": "Succeeded"}, {"phase": "Failed"}], ids=["succeeded", "failed"])
def test_a_pod_that_ended_is_none(change: dict[str, Any]) -> None:
    assert part_values(pod("coredns/coredns:1", **change)) is None


def test_one_that_goes_away_is_none() -> None:
    body = pod("coredns/coredns:1")
    body["metadata"]["deletionTimestamp"] = AT
    assert part_values(body) is None


def test_crashes_are_told_with_their_time_and_without_spans_that_change() -> None:
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container=main"}
    last = {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:05:00Z"}}
    statuses = [{"restartCount": 7, "state": {"waiting": waiting}, "lastState": last}]
    values = part_values(pod("coredns/coredns:1", ready=False, containerStatuses=statuses))
    assert values is not None
    assert values.restarts == 7
    assert values.crashed_at == datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
    assert values.unready_since == datetime(2026, 1, 1, tzinfo=UTC)
    assert values.detail == "CrashLoopBackOff: back-off … restarting failed container=main"


def test_an_orderly_restart_is_no_crash() -> None:
    last = {"terminated": {"exitCode": 0, "finishedAt": AT}}
    values = part_values(pod("coredns/coredns:1", containerStatuses=[{"restartCount": 1, "lastState": last}]))
    assert values is not None
    assert values.crashed_at is None


def test_one_that_no_node_takes_says_why() -> None:
    body = pod("coredns/coredns:1", ready=False)
    del body["spec"]["nodeName"]
    body["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
    ]
    values = part_values(body)
    assert values is not None
    assert (values.node, values.detail) == ("", "0/2 nodes are available")


def test_each_part_has_a_name_of_its_own() -> None:
    assert len({part.name for part in PARTS}) == len(PARTS)


@given(image=st.text(max_size=80))
def test_no_image_makes_it_fail(image: str) -> None:
    found = part_of([image, "nginx:1"])
    assert found is None or found[1] == split_image(image)[1]
