"""The GPU behind a kubelet's device, and the pod of a process."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitoring.agent.kubelet import Given
from monitoring.agent.pods import holdings, owner_in, owner_of
from tests.monitoring.agent.conftest import Node

GPU = "GPU-11111111-1111-4111-8111-111111111111"
MIG = "MIG-33333333-3333-4333-8333-333333333333"
BY_INDEX = {0: "GPU-zero", 3: GPU}


@pytest.mark.parametrize(
    ("resource", "device", "uuid"),
    [
        ("nvidia.com/gpu", GPU, GPU),
        ("nvidia.com/gpu.shared", f"{GPU}::7", GPU),
        ("nvidia.com/mig-1g.10gb", MIG, MIG),
        ("nvidia.com/mig-1g.10gb.shared", f"{MIG}::1", MIG),
        ("nvidia.com/mig-1g.5gb", f"MIG-{GPU}/7/0", f"MIG-{GPU}/7/0"),  # the names of drivers before 470
        ("nvidia.com/gpu", "3", GPU),
        ("nvidia.com/gpu", "3::2", GPU),
        ("nvidia.com/gpu", "nvidia3", GPU),
        ("nvidia.com/gpu", "nvidia3/vgpu1", GPU),
        ("nvidia.com/gpu", "9", None),
        ("nvidia.com/gpu", f"{GPU}-4", None),  # HAMi gives another one than the kubelet chose
        ("nvidia.com/gpu", "nvidia3/gi5", None),
        ("example.com/renamed-gpu", GPU, GPU),
    ],
)
def test_devices_of_gpus(resource: str, device: str, uuid: str | None) -> None:
    [holding] = holdings([Given("lab", "pod", "main", resource, device)], BY_INDEX)
    assert holding.get("uuid") == uuid
    assert (holding["resource"], holding["device"], holding["pod"]) == (resource, device, "pod")


@pytest.mark.parametrize(
    ("resource", "device"),
    [
        ("nvidia.com/hostdev", "0000:86:00.1"),
        ("rdma/hca_shared", "3"),
        ("smarter-devices/fuse", "0"),
        ("", ""),
    ],
)
def test_devices_that_are_no_gpus(resource: str, device: str) -> None:
    assert list(holdings([Given("lab", "pod", "main", resource, device)], BY_INDEX)) == []


# --- Processes

POD = "0f3dbd21-3a4c-4f7e-9d7d-3d7f7d6a1b2c"
ID = "0123456789abcdef" * 4
OTHER = "f" * 64
UNDERSCORED = POD.replace("-", "_")


@pytest.mark.parametrize(
    "cgroups",
    [
        f"12:devices:/kubepods/burstable/pod{POD}/{ID}\n3:cpu:/kubepods/burstable/pod{POD}/{ID}",
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",
        f"0::/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/crio-{ID}.scope/container",
        f"0::/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/libpod-{ID}.scope",
        f"1:name=systemd:/system.slice/containerd.service/kubepods-pod{UNDERSCORED}.slice:cri-containerd:{ID}",
        f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",
        f"0::/../../kubepods-burstable-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",  # seen from a container
        f"0::/\n11:devices:/kubepods/burstable/pod{POD}/{ID}",  # both versions at once
        f"0::/kubepods/pod{POD}/{ID}/kubepods/burstable/pod{POD[::-1]}/{OTHER}",  # a cluster within a pod
        f"0::/kubepods/pod{POD}/{ID}/docker/{OTHER}",
    ],
)
def test_processes_of_pods(cgroups: str) -> None:
    assert owner_in(cgroups) == {"pod_uid": POD, "container_id": ID}


def test_a_process_of_a_static_pod() -> None:
    uid = "0123456789abcdef" * 2
    assert owner_in(f"0::/kubepods/burstable/pod{uid}/{ID}") == {"pod_uid": uid, "container_id": ID}


def test_a_pods_process_outside_of_its_containers() -> None:
    path = f"0::/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/crio-conmon-{ID}.scope"
    assert owner_in(path)["pod_uid"] == POD


@pytest.mark.parametrize(
    "cgroups",
    [
        "0::/user.slice/user-1000.slice/session-2.scope",
        f"0::/system.slice/docker-{ID}.scope",
        f"0::/machine.slice/libpod-{ID}.scope",
        "0::/",
        "",
        "0::/user.slice/pod-of-somebody/podcast.service",
        f"0::/kubepods/pod{POD}0123/{ID}",
    ],
)
def test_processes_of_no_pod(cgroups: str) -> None:
    assert owner_in(cgroups) == {}


@settings(max_examples=60, deadline=None)
@given(
    uid=st.uuids().map(str),
    id=st.text("0123456789abcdef", min_size=64, max_size=64),
    quality=st.sampled_from(["", "burstable", "besteffort"]),
    runtime=st.sampled_from(["", "cri-containerd", "crio", "docker"]),
    before=st.sampled_from(["", "0::/\n", "9:cpuset:/\n", "4:name=systemd:/init.scope\n"]),
)
def test_any_pod_by_cgroupfs_or_systemd(uid: str, id: str, quality: str, runtime: str, before: str) -> None:
    """Check paths of cgroupfs where there is no runtime."""
    if runtime:
        name = "-".join(filter(None, ["kubepods", quality, f"pod{uid.replace('-', '_')}"]))
        path = f"0::/kubepods.slice/{name}.slice/{runtime}-{id}.scope"
    else:
        path = "/".join(filter(None, ["5:devices:/kubepods", quality, f"pod{uid}", id]))
    assert owner_in(f"{before}{path}\n") == {"pod_uid": uid, "container_id": id}


@settings(max_examples=30, deadline=None)
@given(text=st.text(max_size=200))
def test_any_other_text_names_no_pod(text: str) -> None:
    assert owner_in(text) == {}


def test_a_process_that_has_ended_has_no_pod(node: Node) -> None:
    assert owner_of(4711, node.proc) == {}
