"""What a PVC says about its volume, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.storage.classes import Class, judge
from storage.cluster.manifests import access_for
from storage.cluster.reading import in_mib, read, size_to_ask
from storage.models import Access, Kind, Phase, Volume

FIRST = Class("local", can_grow=True, binds_first=True, is_shared=False, is_enforced=True)


def claim(phase: str = "Bound", size: str = "1Gi", asked: str = "1Gi", **status: Any) -> dict[str, Any]:
    found = {"phase": phase, **status}
    if phase == "Bound":
        found["capacity"] = {"storage": size}
    return {
        "metadata": {"name": "vol-1"},
        "spec": {"resources": {"requests": {"storage": asked}}},
        "status": found,
    }


def volume(requested_mib: int = 1024) -> Volume:
    return Volume(requested_mib=requested_mib)


def condition(kind: str, message: str = "") -> list[dict[str, str]]:
    return [{"type": kind, "status": "True", "message": message}]


@pytest.mark.parametrize(
    ("body", "requested_mib", "phase", "problem"),
    [
        (claim(), 1024, Phase.READY, ""),
        (claim(size="2Gi"), 1024, Phase.READY, ""),
        (claim(), 2048, Phase.GROWING, ""),
        (claim(conditions=condition("FileSystemResizePending")), 2048, Phase.GROWING, "grows_at_next_start"),
        (claim(conditions=condition("ControllerResizeError", "no")), 2048, Phase.GROWING, "growth_failed"),
        (
            claim(allocatedResourceStatuses={"storage": "NodeResizeInfeasible"}),
            2048,
            Phase.GROWING,
            "growth_failed",
        ),
        (claim("Lost"), 1024, Phase.FAILED, "volume_lost"),
        (claim("Pending"), 1024, Phase.PENDING, ""),
    ],
)
def test_phase_and_problem(body: dict[str, Any], requested_mib: int, phase: Phase, problem: str) -> None:
    found = read(volume(requested_mib), body, None)
    assert (found.phase, found.problem) == (phase, problem)


def test_a_class_that_binds_at_the_first_use_is_ready_unless_it_warns() -> None:
    assert read(volume(), claim("Pending"), FIRST).phase == Phase.READY
    event = {"type": "Warning", "message": 'storageclass.storage.k8s.io "x" not found'}
    found = read(volume(), claim("Pending"), FIRST, [event])
    assert (found.phase, found.problem) == (Phase.PENDING, "class_missing")


@pytest.mark.parametrize(
    ("body", "requested_mib", "size"),
    [
        (claim(asked="1Gi"), 1024, None),
        (claim(asked="1Gi"), 2048, 2048),
        (claim("Pending", asked="1Gi"), 2048, None),
        (claim(asked="4Gi"), 2048, None),  # grown by hand: nothing is lowered that did not fail
        (claim(asked="4Gi", conditions=condition("NodeResizeError")), 2048, 2048),
    ],
)
def test_the_size_to_ask_for(body: dict[str, Any], requested_mib: int, size: int | None) -> None:
    assert size_to_ask(volume(requested_mib), body) == size


@pytest.mark.parametrize(
    ("quantity", "mib"), [("1Gi", 1024), ("1000000k", 953), (None, 0), ("much", 0), ("1.5Gi", 1536)]
)
def test_quantities(quantity: str | None, mib: int) -> None:
    assert in_mib(quantity) == mib


@pytest.mark.parametrize(
    ("provisioner", "is_shared", "is_enforced"),
    [
        ("rook-ceph.cephfs.csi.ceph.com", True, True),
        ("rbd.csi.ceph.com", False, True),
        ("rancher.io/local-path", False, False),
        ("nfs.csi.k8s.io", True, False),
        ("topolvm.io", False, True),
    ],
)
def test_classes_of_known_drivers(provisioner: str, is_shared: bool, is_enforced: bool) -> None:
    found = judge({"metadata": {"name": "c"}, "provisioner": provisioner})
    assert (found.is_shared, found.is_enforced) == (is_shared, is_enforced)


def test_an_admin_says_which_other_classes_are_shared() -> None:
    body = {"metadata": {"name": "c"}, "provisioner": "example.org/own"}
    assert access_for(Kind.DATASET, judge(body)) == Access.NODE
    assert access_for(Kind.DATASET, judge(body, ["c"])) == Access.MANY
    assert access_for(Kind.DISK, judge(body, ["c"])) == Access.NODE


def test_the_node_of_a_local_volume() -> None:
    def on(*nodes: str) -> Volume:
        rule = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
        return Volume(affinity={"nodeSelectorTerms": [{"matchExpressions": [rule]}]})

    assert (on("gpu-1").node, on("gpu-1", "gpu-2").node, Volume().node) == ("gpu-1", "", "")
