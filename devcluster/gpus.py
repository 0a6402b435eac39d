"""How a node announces its GPUs: the labels, resources and annotations of each way of sharing them. Pure.

GPU Feature Discovery (k8s-device-plugin v0.20) is taken to label every node with GPUs, whichever plugin shares them;
`nvidia.com/gpu.present` comes from whoever installed it. Plugins differ in the resources that they register:

- `none`: `nvidia.com/gpu`, one per card
- `time-slicing`, `mps`: `nvidia.com/gpu` times `replicas`, or with `rename` `nvidia.com/gpu.shared`
- `mig`, strategy `mixed`: `nvidia.com/mig-PROFILE`; strategy `single`: `nvidia.com/gpu`, one per instance
- `hami`: `nvidia.com/gpu` times `split`; memory and cores only in an annotation, card by card
- `gpu-manager`: `tencent.com/vcuda-core`, 100 per card, and `tencent.com/vcuda-memory` in units of 256 MiB
"""

import json
import time
import uuid
from typing import Any

from devcluster.resources import Obj

HAMI_REGISTER = "hami.io/node-nvidia-register"
HAMI_MANAGED = frozenset(
    f"nvidia.com/{name}" for name in ("gpumem", "gpumem-percentage", "gpucores", "priority")
)
"""What HAMi's scheduler gives out by itself: on its nodes, Kubernetes' own does not look at it."""
VCUDA_MEMORY_UNIT_MIB = 256
SHARED = ("time-slicing", "mps")
WAYS = ("none", *SHARED, "mig", "hami", "gpu-manager")
_PREFIX = "nvidia.com/"


def check(gpus: Obj) -> None:
    """Refuse what the node file cannot mean; ValueError."""
    way = gpus.get("sharing", "none")
    if way not in WAYS:
        raise ValueError(f"sharing: {way}: not one of {', '.join(WAYS)}")
    if way == "mig" and gpus.get("strategy", "mixed") not in ("mixed", "single"):
        raise ValueError(f"strategy: {gpus['strategy']}: neither mixed nor single")


def resources(gpus: Obj) -> dict[str, str]:
    """What the device plugin registers, as the node's capacity."""
    count, way = gpus["count"], gpus.get("sharing", "none")
    if way == "mig":
        name = "gpu" if _single(gpus) else f"mig-{gpus['profile']}"
        return {_PREFIX + name: str(count * _instances(gpus))}
    if way in SHARED:
        name = "gpu.shared" if gpus.get("rename") else "gpu"
        return {_PREFIX + name: str(count * _replicas(gpus))}
    if way == "hami":
        return {_PREFIX + "gpu": str(count * gpus.get("split", 10))}
    if way == "gpu-manager":
        blocks = gpus["memory_mib"] // VCUDA_MEMORY_UNIT_MIB
        return {"tencent.com/vcuda-core": str(100 * count), "tencent.com/vcuda-memory": str(count * blocks)}
    return {_PREFIX + "gpu": str(count)}


def annotations(node: str, gpus: Obj) -> dict[str, str]:
    """HAMi's inventory: what its scheduler knows of the cards. Members that are zero are left out, as Go does."""
    if gpus.get("sharing") != "hami":
        return {}
    cards = []
    for n in range(gpus["count"]):
        card: Obj = {"id": card_id(node, n), "index": n, "count": gpus.get("split", 10)}
        card |= {"devmem": gpus["memory_mib"], "devcore": 100, "type": f"NVIDIA-{_model(gpus)}"}
        cards.append({k: v for k, v in card.items() if v} | {"mode": "hami-core", "health": True})
    return {HAMI_REGISTER: json.dumps(cards, separators=(",", ":"))}


def without_health(annotations: dict[str, str], dead: int) -> dict[str, str]:
    """HAMi's inventory once so many cards have died, the last ones first."""
    if not dead or HAMI_REGISTER not in annotations:
        return annotations
    cards = json.loads(annotations[HAMI_REGISTER])
    for card in cards[-dead:]:
        del card["health"]  # a false one is left out
    return annotations | {HAMI_REGISTER: json.dumps(cards, separators=(",", ":"))}


def card_id(node: str, n: int) -> str:
    """The same at each start."""
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{n}.{node}.devcluster')}"


def labels(gpus: Obj) -> dict[str, str]:
    """Every value is a string."""
    way = gpus.get("sharing", "none")
    found = _discovered(gpus) | _driver()
    if way == "mig":
        found |= _mig(gpus)
    if way == "hami":
        found["gpu"] = "on"  # by hand: HAMi works on nodes that have it
    if way == "gpu-manager":
        found["nvidia-device-enable"] = "enable"
    return {key: str(value) for key, value in found.items()}


def _discovered(gpus: Obj) -> dict[str, Any]:
    way = gpus.get("sharing", "none")
    shared = way in SHARED
    major, _, minor = str(gpus.get("compute", "8.0")).partition(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": _product(gpus) + ("-SHARED" if shared and not gpus.get("rename") else ""),
        "nvidia.com/gpu.memory": gpus["memory_mib"],
        "nvidia.com/gpu.count": gpus["count"],
        "nvidia.com/gpu.replicas": _replicas(gpus) if shared else 1,
        "nvidia.com/gpu.sharing-strategy": way if shared else "none",
        "nvidia.com/gpu.family": gpus.get("family", "ampere"),
        "nvidia.com/gpu.machine": "devcluster",
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor or "0",
        "nvidia.com/mig.capable": "true" if (major, minor or "0") in (("8", "0"), ("9", "0")) else "false",
        "nvidia.com/mig.strategy": gpus.get("strategy", "mixed") if way == "mig" else "single",
        "nvidia.com/mps.capable": "true" if way == "mps" else "false",
        "nvidia.com/vgpu.present": "false",
        "nvidia.com/gfd.timestamp": int(time.time()),
    }


def _driver() -> dict[str, Any]:
    return {
        "nvidia.com/cuda.driver-version.major": 580,
        "nvidia.com/cuda.driver-version.minor": 95,
        "nvidia.com/cuda.driver-version.revision": "05",
        "nvidia.com/cuda.driver-version.full": "580.95.05",
        "nvidia.com/cuda.runtime-version.major": 13,
        "nvidia.com/cuda.runtime-version.minor": 0,
        "nvidia.com/cuda.runtime-version.full": "13.0",
    }


def _mig(gpus: Obj) -> dict[str, Any]:
    """Under `single` the instances stand for the cards; under `mixed` they have labels beside them."""
    profile = gpus["profile"]
    slices, _, memory = profile.partition("g.")
    one: dict[str, Any] = {
        "product": f"{_product(gpus)}-MIG-{profile}",
        "count": gpus["count"] * _instances(gpus),
        "memory": int(memory.removesuffix("gb")) * 1024 - 512,
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
    return {"nvidia.com/gpu.replicas": 0} | mixed  # nothing is left of a card that is cut up


def _single(gpus: Obj) -> bool:
    return bool(gpus.get("strategy") == "single")


def _instances(gpus: Obj) -> int:
    return int(gpus.get("instances", 7))


def _replicas(gpus: Obj) -> int:
    return int(gpus.get("replicas", 4))


def _product(gpus: Obj) -> str:
    return str(gpus["product"]).replace(" ", "-")


def _model(gpus: Obj) -> str:
    return str(gpus["product"]).removeprefix("NVIDIA-").removeprefix("NVIDIA ")
