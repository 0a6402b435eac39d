"""Detection of how a node shares GPUs: by labels of GPU Feature Discovery, resources, and HAMi's cards. Pure.

The profile of a MIG instance gives its part of a GPU, however the cards of a node are cut: `1g.10gb` on 80 GB is a
seventh. Under the strategy `single` nothing says how many cards the instances come from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusters.nodes.node_labels import COUNT, MEMORY_MIB, PRODUCT, REPLICAS, STRATEGY
from quotas.models import Sharing

GPU = "nvidia.com/gpu"
VCUDA_CORE, VCUDA_MEMORY, BLOCK_MIB = "tencent.com/vcuda-core", "tencent.com/vcuda-memory", 256
MIG_RESOURCE = re.compile(r"nvidia\.com/mig-(?P<profile>[\w.+-]+?)(\.shared)?$")
MIG_PRODUCT = re.compile(r"-MIG-(?P<profile>\dg\.\d+gb\S*)$")
PROFILE = re.compile(r"(?P<slices>\d)g\.(?P<gb>\d+)gb")
GIGABYTES = re.compile(r"(\d+)GB\b")
MOST_SLICES = 7
SLICED = {"time-slicing": Sharing.TIME_SLICING, "mps": Sharing.MPS}


@dataclass(frozen=True)
class Found:
    """A resource of a node, as a pool of it would be."""

    sharing: Sharing
    resource: str
    units: int
    units_per_gpu: int
    gpu_memory_mib: int | None
    unit_memory_mib: int | None = None
    mig_profile: str = ""

    @property
    def gpus(self) -> int:
        return self.units // self.units_per_gpu


def found_on(
    labels: Mapping[str, str], resources: Mapping[str, int], devices: Sequence[Mapping[str, Any]] = ()
) -> list[Found]:
    """Return all GPU resources that a node offers; resources of other vendors are not guessed at."""
    memory_mib = int(labels.get(MEMORY_MIB, 0)) or None
    if devices:
        return [Found(Sharing.HAMI, GPU, 100 * len(devices), 100, int(devices[0]["memory_mib"]))]
    if cores := resources.get(VCUDA_CORE, 0):
        said_mib = resources.get(VCUDA_MEMORY, 0) * BLOCK_MIB * 100 // cores or None
        return [Found(Sharing.GPU_MANAGER, VCUDA_CORE, cores, 100, memory_mib or said_mib)]
    found = []
    for resource, amount in sorted(resources.items()):
        if not amount:
            continue
        if profile := MIG_RESOURCE.match(resource):
            instance_mib = int(labels.get(f"{resource}.memory", 0)) or None
            found.append(_mig(profile["profile"], resource, amount, labels, memory_mib, instance_mib))
        elif resource in (GPU, f"{GPU}.shared"):
            found.append(_whole_or_sliced(resource, amount, labels, memory_mib))
    return found


def _whole_or_sliced(resource: str, amount: int, labels: Mapping[str, str], memory_mib: int | None) -> Found:
    if profile := MIG_PRODUCT.search(labels.get(PRODUCT, "")):
        return _mig(profile["profile"], resource, amount, labels, None, memory_mib)
    sharing = SLICED.get(labels.get(STRATEGY, ""))
    if sharing is None:
        return Found(Sharing.EXCLUSIVE, resource, amount, 1, memory_mib)
    cards = int(labels.get(COUNT, 0)) or 1
    replicas = int(labels.get(REPLICAS, 0)) or max(1, amount // cards)
    unit_mib = memory_mib // replicas if memory_mib else None
    return Found(sharing, resource, amount, replicas, memory_mib, unit_mib)


def _mig(
    profile: str,
    resource: str,
    amount: int,
    labels: Mapping[str, str],
    gpu_mib: int | None,
    instance_mib: int | None,
) -> Found:
    total_gb = GIGABYTES.search(MIG_PRODUCT.sub("", labels.get(PRODUCT, "")))
    gb = int(total_gb[1]) if total_gb else round(gpu_mib / 1024) if gpu_mib else None
    whole_mib = gpu_mib or (gb * 1024 if gb else None)
    return Found(
        Sharing.MIG, resource, amount, instances_per_gpu(profile, gb), whole_mib, instance_mib, profile
    )


def instances_per_gpu(profile: str, gpu_gb: int | None) -> int:
    """Return how many such instances fill a GPU, by its seven slices of compute and by its memory."""
    said = PROFILE.match(profile)
    if said is None:
        return 1
    by_compute = MOST_SLICES // int(said["slices"])
    return max(1, min(by_compute, gpu_gb // int(said["gb"]) if gpu_gb else by_compute))
