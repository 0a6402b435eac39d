"""The GPU behind a kubelet's device, and the pod of a process. Pure, except that one small file is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from .kubelet import Given
from .schema import Holding

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# NVIDIA's plugin; the number of the share follows where a GPU is shared: GPU-…, GPU-…::3, MIG-…, MIG-GPU-…/7/0
_BY_UUID = re.compile(rf"((?:GPU|MIG)-{_UUID}|MIG-GPU-{_UUID}/\d+/\d+)(?:::\d+)?")
# The same plugin, set to use indexes: 3, 3::1. GKE's plugin: nvidia3, nvidia3/vgpu1
_BY_INDEX = re.compile(r"(?:nvidia)?(\d+)(?:::\d+|/vgpu\d+)?")
_NVIDIA = "nvidia.com/"


def holdings(given: Iterable[Given], uuids: Mapping[int, str]) -> Iterator[Holding]:
    """Yield the given devices that are GPUs. `uuids` are this node's, by index.

    HAMi's devices look like GPU-…-3, but HAMi gives the container another GPU than the kubelet chose: its annotation on
    the pod names that GPU. They come without a UUID here, like MIG devices of GKE's plugin and devices of gpu-manager.
    """
    for entry in given:
        if not is_gpu(entry):
            continue
        holding = cast(Holding, entry._asdict())
        if uuid := _uuid(entry.device, uuids):
            holding["uuid"] = uuid
        yield holding


def is_gpu(entry: Given) -> bool:
    """Return True for a GPU. NVIDIA's network cards are resources of nvidia.com too, with other device names."""
    if entry.device.startswith(("GPU-", "MIG-")):
        return True
    return entry.resource.startswith(_NVIDIA) and bool(re.match(r"(?:nvidia)?\d+(?:::|/|$)", entry.device))


def _uuid(device: str, uuids: Mapping[int, str]) -> str | None:
    if found := _BY_UUID.fullmatch(device):
        return found[1]
    if found := _BY_INDEX.fullmatch(device):
        return uuids.get(int(found[1]))
    return None


# --- Processes

# kubepods/burstable/pod<uid>/<id> by cgroupfs; kubepods-burstable-pod<uid_>.slice/cri-containerd-<id>.scope by systemd;
# kubepods-pod<uid_>.slice:cri-containerd:<id> where containerd and the kubelet disagree about the driver.
_POD = re.compile(
    r"[/-]pod(?P<pod>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?"
    r"(?:[/:](?:[a-z-]+[-:])?(?P<container>[0-9a-f]{64}))?(?![0-9a-f])"
)


def owner_in(cgroups: str) -> dict[str, str]:
    """Return pod and container from a /proc/PID/cgroup of either version; {} outside of pods.

    The outermost pod counts: a kubelet that runs inside a pod is part of that one pod on this node.
    """
    found = _POD.search(cgroups)
    if not found:
        return {}
    owner = {"pod_uid": found["pod"].replace("_", "-")}
    return owner | {"container_id": found["container"]} if found["container"] else owner


def owner_of(pid: int, proc: Path) -> dict[str, str]:
    """Return pod and container of a process; {} if the process has ended by now."""
    try:
        return owner_in((proc / str(pid) / "cgroup").read_text(errors="replace"))
    except OSError:
        return {}
