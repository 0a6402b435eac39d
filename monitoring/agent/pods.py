"""Which GPU a kubelet's device is, and which pod a process belongs to. Pure, but for reading one small file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from .kubelet import Given
from .schema import Holding

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# NVIDIA's plugin, with the number of the share where a GPU is shared: GPU-…, GPU-…::3, MIG-…, MIG-GPU-…/7/0
_BY_UUID = re.compile(rf"((?:GPU|MIG)-{_UUID}|MIG-GPU-{_UUID}/\d+/\d+)(?:::\d+)?")
# The same plugin told to count: 3, 3::1. And the one of GKE: nvidia3, nvidia3/vgpu1
_BY_INDEX = re.compile(r"(?:nvidia)?(\d+)(?:::\d+|/vgpu\d+)?")
_NVIDIA = "nvidia.com/"


def holdings(given: Iterable[Given], uuids: Mapping[int, str]) -> Iterator[Holding]:
    """What of it is a GPU. `uuids` are this node's, by index.

    HAMi's devices look like GPU-…-3, but it gives the container another GPU than the kubelet chose: its own annotation
    at the pod tells. They come without a UUID, as do MIG devices of GKE's plugin and places of gpu-manager.
    """
    for entry in given:
        if not is_gpu(entry):
            continue
        holding = cast(Holding, entry._asdict())
        if uuid := _uuid(entry.device, uuids):
            holding["uuid"] = uuid
        yield holding


def is_gpu(entry: Given) -> bool:
    """NVIDIA's network cards are resources of nvidia.com too: their devices have other names."""
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
# kubepods-pod<uid_>.slice:cri-containerd:<id> where containerd and the kubelet do not agree which of the two it is.
_POD = re.compile(
    r"[/-]pod(?P<pod>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?"
    r"(?:[/:](?:[a-z-]+[-:])?(?P<container>[0-9a-f]{64}))?(?![0-9a-f])"
)


def owner_in(cgroups: str) -> dict[str, str]:
    """The pod and container in a /proc/PID/cgroup of either version; empty for what runs in no pod.

    The outermost pod counts: whoever runs a kubelet inside a pod is still one pod to this node.
    """
    found = _POD.search(cgroups)
    if not found:
        return {}
    owner = {"pod_uid": found["pod"].replace("_", "-")}
    return owner | {"container_id": found["container"]} if found["container"] else owner


def owner_of(pid: int, proc: Path) -> dict[str, str]:
    """Processes come and go: one that is gone by now belongs to nobody."""
    try:
        return owner_in((proc / str(pid) / "cgroup").read_text(errors="replace"))
    except OSError:
        return {}
