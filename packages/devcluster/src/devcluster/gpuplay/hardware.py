"""Cards of a node as an agent lists them: the same at each start. Pure."""

import uuid
from dataclasses import dataclass

from devcluster.gpus import card_id, instance_mib, instances, shares, way
from devcluster.resources import Obj

_WATTS = {"T4": 70, "L4": 72, "A10": 150, "V100": 300, "A100": 400, "H100": 700, "H200": 700, "B200": 1000}
_OTHER_WATTS = 300
_WITHOUT_ECC = ("GeForce", "RTX-30", "RTX-40", "RTX-50", "TITAN")


@dataclass(frozen=True)
class Instance:
    """Part of a card that MIG cut off."""

    uuid: str
    profile: str
    memory_mib: int
    number: int


@dataclass(frozen=True)
class Card:
    index: int
    uuid: str
    name: str
    memory_mib: int
    compute: str
    ecc: bool
    power_limit_watts: int
    instances: tuple[Instance, ...]
    shares: int
    """How many device ids the plugin makes of it; 1 where it is given out whole."""

    @property
    def bus(self) -> str:
        return f"00000000:{0x10 + self.index:02X}:00.0"


def cards(node: str, gpus: Obj) -> tuple[Card, ...]:
    """Return the node's cards. `gpus` is its entry in the node file."""
    product = str(gpus["product"])
    return tuple(
        Card(
            index=index,
            uuid=card_id(node, index),
            name=product.replace("-", " "),
            memory_mib=int(gpus["memory_mib"]),
            compute=str(gpus.get("compute", "8.0")),
            ecc=bool(gpus.get("ecc", not any(word in product for word in _WITHOUT_ECC))),
            power_limit_watts=_watts(product),
            instances=_instances(node, index, gpus),
            shares=shares(gpus),
        )
        for index in range(int(gpus["count"]))
    )


def inventory(found: tuple[Card, ...], labels: dict[str, str]) -> Obj:
    """Return the inventory that an agent reports, with the driver's version from the node's labels."""
    return {
        "driver_version": labels["nvidia.com/cuda.driver-version.full"],
        "cuda_version": labels["nvidia.com/cuda.runtime-version.full"],
        "gpus": [_facts(card) for card in found],
    }


def _facts(card: Card) -> Obj:
    return {
        "index": card.index,
        "uuid": card.uuid,
        "name": card.name,
        "memory_mib": card.memory_mib,
        "ecc": card.ecc,
        "ecc_after_reset": card.ecc,
        "compute_capability": card.compute,
        "mig": bool(card.instances),
        "mig_devices": [
            {
                "uuid": one.uuid,
                "name": f"{card.name} MIG {one.profile}",
                "memory_mib": one.memory_mib,
                "gpu_instance": one.number,
                "compute_instance": 0,
            }
            for one in card.instances
        ],
        "pci_bus": card.bus,
        "power_limit_watts": float(card.power_limit_watts),
    }


def _watts(product: str) -> int:
    words = product.replace(" ", "-").split("-")
    return next((watts for model, watts in _WATTS.items() if model in words), _OTHER_WATTS)


def _instances(node: str, index: int, gpus: Obj) -> tuple[Instance, ...]:
    if way(gpus) != "mig":
        return ()
    profile = str(gpus["profile"])
    names = (f"mig{n}.{index}.{node}.devcluster" for n in range(instances(gpus)))
    return tuple(
        Instance(f"MIG-{uuid.uuid5(uuid.NAMESPACE_DNS, name)}", profile, instance_mib(profile), n + 1)
        for n, name in enumerate(names)
    )
