"""Labels, resources and annotations by which a node announces its GPUs, for each way of sharing them. Pure.

GPU Feature Discovery (k8s-device-plugin v0.20) is assumed to label every node with GPUs, whichever plugin shares them;
its installer sets `nvidia.com/gpu.present`. Plugins differ in the resources that they register:

- `none`: `nvidia.com/gpu`, one per card
- `time-slicing`, `mps`: `nvidia.com/gpu` times `replicas`, or with `rename` `nvidia.com/gpu.shared`
- `mig`, strategy `mixed`: `nvidia.com/mig-PROFILE`; strategy `single`: `nvidia.com/gpu`, one per instance
- `hami`: `nvidia.com/gpu` times `split`; memory and cores only in an annotation, card by card
- `gpu-manager`: `tencent.com/vcuda-core`, 100 per card, and `tencent.com/vcuda-memory` in units of 256 MiB
"""

import json
import time
import uuid
from collections.abc import Set
from typing import Any

from devcluster.gpuplay.lives import Life
from devcluster.resources import Obj

HAMI_REGISTER = "hami.io/node-nvidia-register"
HAMI_MANAGED = frozenset(
    f"nvidia.com/{name}" for name in ("gpumem", "gpumem-percentage", "gpucores", "priority")
)
"""What HAMi's scheduler gives out by itself: on its nodes, Kubernetes' own does not look at it."""
VCUDA_MEMORY_UNIT_MIB = 256
SHARED = ("time-slicing", "mps")
_DRIVER, _CUDA = "580.95.05", "13.0"
WAYS = ("none", *SHARED, "mig", "hami", "gpu-manager")
_PREFIX = "nvidia.com/"


def way(gpus: Obj) -> str:
    """Return the way in which the node's cards are shared."""
    return str(gpus.get("sharing", "none"))


def shares(gpus: Obj) -> int:
    """Return how many shares a card has; 1 if it is given out whole or in other units."""
    if way(gpus) in SHARED:
        return int(gpus.get("replicas", 4))
    return int(gpus.get("split", 10)) if way(gpus) == "hami" else 1


def instances(gpus: Obj) -> int:
    """Return the number of MIG instances per card."""
    return int(gpus.get("instances", 7))


def instance_mib(profile: str) -> int:
    """Return the memory of an instance such as `1g.10gb`, in MiB: less than its name says."""
    return int(profile.partition("g.")[2].removesuffix("gb")) * 1024 - 512


def check(gpus: Obj) -> None:
    """Raise ValueError for an entry of the node file that makes no sense."""
    if way(gpus) not in WAYS:
        raise ValueError(f"sharing: {way(gpus)}: not one of {', '.join(WAYS)}")
    if way(gpus) == "mig" and gpus.get("strategy", "mixed") not in ("mixed", "single"):
        raise ValueError(f"strategy: {gpus['strategy']}: neither mixed nor single")
    Life.read(gpus.get("life", "idle"))


def resources(gpus: Obj) -> dict[str, str]:
    """Return the resources that the device plugin adds to the node's capacity."""
    count = gpus["count"]
    if way(gpus) == "mig":
        name = "gpu" if _single(gpus) else f"mig-{gpus['profile']}"
        return {_PREFIX + name: str(count * instances(gpus))}
    if way(gpus) == "gpu-manager":
        blocks = gpus["memory_mib"] // VCUDA_MEMORY_UNIT_MIB
        return {"tencent.com/vcuda-core": str(100 * count), "tencent.com/vcuda-memory": str(count * blocks)}
    name = "gpu.shared" if way(gpus) in SHARED and gpus.get("rename") else "gpu"
    return {_PREFIX + name: str(count * shares(gpus))}


def annotations(node: str, gpus: Obj) -> dict[str, str]:
    """Return HAMi's inventory, by which its scheduler knows the cards. Like Go, leave out members that are zero."""
    if way(gpus) != "hami":
        return {}
    cards = []
    for n in range(gpus["count"]):
        card: Obj = {"id": card_id(node, n), "index": n, "count": shares(gpus)}
        card |= {"devmem": gpus["memory_mib"], "devcore": 100, "type": f"NVIDIA-{_model(gpus)}"}
        cards.append({k: v for k, v in card.items() if v} | {"mode": "hami-core", "health": True})
    return {HAMI_REGISTER: json.dumps(cards, separators=(",", ":"))}


def without_health(annotations: dict[str, str], unwell: Set[int]) -> dict[str, str]:
    """Return HAMi's inventory with the cards of these indexes marked as failed."""
    if not unwell or HAMI_REGISTER not in annotations:
        return annotations
    cards = json.loads(annotations[HAMI_REGISTER])
    for index in unwell:
        del cards[index]["health"]  # Go leaves out a false member
    return annotations | {HAMI_REGISTER: json.dumps(cards, separators=(",", ":"))}


def card_id(node: str, n: int) -> str:
    """Return a card's UUID, the same at each start."""
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{n}.{node}.devcluster')}"


def labels(gpus: Obj) -> dict[str, str]:
    """Return the GPU labels of a node; all values are strings."""
    found = _discovered(gpus) | _driver()
    if way(gpus) == "mig":
        found |= _mig(gpus)
    if way(gpus) == "hami":
        found["gpu"] = "on"  # set by hand: HAMi manages only nodes that have it
    if way(gpus) == "gpu-manager":
        found["nvidia-device-enable"] = "enable"
    return {key: str(value) for key, value in found.items()}


def _discovered(gpus: Obj) -> dict[str, Any]:
    shared = way(gpus) in SHARED
    major, _, minor = str(gpus.get("compute", "8.0")).partition(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": _product(gpus) + ("-SHARED" if shared and not gpus.get("rename") else ""),
        "nvidia.com/gpu.memory": gpus["memory_mib"],
        "nvidia.com/gpu.count": gpus["count"],
        "nvidia.com/gpu.replicas": shares(gpus) if shared else 1,
        "nvidia.com/gpu.sharing-strategy": way(gpus) if shared else "none",
        "nvidia.com/gpu.family": gpus.get("family", "ampere"),
        "nvidia.com/gpu.machine": "devcluster",
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor or "0",
        "nvidia.com/mig.capable": "true" if (major, minor or "0") in (("8", "0"), ("9", "0")) else "false",
        "nvidia.com/mig.strategy": gpus.get("strategy", "mixed") if way(gpus) == "mig" else "single",
        "nvidia.com/mps.capable": "true" if way(gpus) == "mps" else "false",
        "nvidia.com/vgpu.present": "false",
        "nvidia.com/gfd.timestamp": int(time.time()),
    }


def _driver() -> dict[str, Any]:
    major, minor, revision = _DRIVER.split(".")
    cuda_major, cuda_minor = _CUDA.split(".")
    return {
        "nvidia.com/cuda.driver-version.major": major,
        "nvidia.com/cuda.driver-version.minor": minor,
        "nvidia.com/cuda.driver-version.revision": revision,
        "nvidia.com/cuda.driver-version.full": _DRIVER,
        "nvidia.com/cuda.runtime-version.major": cuda_major,
        "nvidia.com/cuda.runtime-version.minor": cuda_minor,
        "nvidia.com/cuda.runtime-version.full": _CUDA,
    }


def _mig(gpus: Obj) -> dict[str, Any]:
    """Return the MIG labels: instances replace the cards under `single`, and are beside them under `mixed`."""
    profile = gpus["profile"]
    slices = profile.partition("g.")[0]
    one: dict[str, Any] = {
        "product": f"{_product(gpus)}-MIG-{profile}",
        "count": gpus["count"] * instances(gpus),
        "memory": instance_mib(profile),
        "replicas": 1,
        "sharing-strategy": "none",
        "multiprocessors": 14 * int(slices),
        "slices.gi": slices,
        "slices.ci": slices,
        "engines.copy": slices,
        "engines.decoder": int(slices) // 2,
        "engines.encoder": 0,
        "engines.jpeg": 0,
        "engines.ofa": 0,
    }
    if _single(gpus):
        return {f"nvidia.com/gpu.{key}": value for key, value in one.items()}
    mixed = {f"nvidia.com/mig-{profile}.{key}": value for key, value in one.items()}
    return {"nvidia.com/gpu.replicas": 0} | mixed  # a card that is cut up cannot be used whole


def _single(gpus: Obj) -> bool:
    return bool(gpus.get("strategy") == "single")


def _product(gpus: Obj) -> str:
    return str(gpus["product"]).replace(" ", "-")


def _model(gpus: Obj) -> str:
    return str(gpus["product"]).removeprefix("NVIDIA-").removeprefix("NVIDIA ")
