"""Devices of each container, as a kubelet's device manager gives them out: for the pod's life, never twice.

Each device has an id of the plugin: a card, a share of a card (`GPU-…::2`), an instance of MIG, or one of HAMi's places
(`GPU-…-2`). As NVIDIA's plugin prefers, shares are taken from the card that has given the fewest. With HAMi the id does
not name the card: HAMi's scheduler chose the card, and wrote it into an annotation of the pod.
"""

import re
from collections import Counter
from dataclasses import dataclass

from devcluster.fleet import Fleet
from devcluster.gpuplay.hardware import Card, cards
from devcluster.gpus import SHARED, resources, way
from devcluster.resources import Obj
from devcluster.scheduling.hami import ALLOCATED
from devcluster.values.quantity import milli

_CARD = re.compile(r"([^,:;]+),[^,:;]+,(\d{1,9}),\d+")
"""UUID, maker, memory, cores."""


@dataclass(frozen=True)
class Device:
    """Device of a node. `uuid` is visible in the container: the card's, or the instance's; None for HAMi's places."""

    id: str
    card: int
    uuid: str | None


@dataclass(frozen=True)
class Holding:
    pod_uid: str
    namespace: str
    pod: str
    container: str
    resource: str
    device: Device


@dataclass(frozen=True)
class _Offer:
    resource: str
    devices: tuple[Device, ...]
    spreads: bool


class Devices:
    """Devices of all simulated nodes, and the pods that hold them."""

    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self.cards = {node.name: cards(node.name, node.gpus) for node in fleet if node.gpus}
        self._offers = {
            node.name: _offer(node.gpus, self.cards[node.name])
            for node in fleet
            if node.gpus and way(node.gpus) != "gpu-manager"
        }
        self._given: dict[str, dict[str, list[Holding]]] = {name: {} for name in self.cards}
        """By node and pod."""
        self._nodes: dict[str, str] = {}

    def give(self, pod: Obj) -> None:
        """Give devices to a pod that its node has admitted: enough are free then."""
        node, meta = str(pod["spec"]["nodeName"]), pod["metadata"]
        offer = self._offers.get(node)
        if offer is None or meta["uid"] in self._nodes:
            return
        for container in pod["spec"]["containers"]:
            limits = (container.get("resources") or {}).get("limits") or {}
            for device in self._best(node, offer, milli(limits.get(offer.resource, "0")) // 1000):
                holding = Holding(
                    meta["uid"], meta["namespace"], meta["name"], container["name"], offer.resource, device
                )
                self._given[node].setdefault(meta["uid"], []).append(holding)
                self._nodes[meta["uid"]] = node

    def take_back(self, pod_uid: str) -> None:
        if node := self._nodes.pop(pod_uid, None):
            del self._given[node][pod_uid]

    def held(self, node: str) -> list[Holding]:
        return [holding for found in self._given.get(node, {}).values() for holding in found]

    def _best(self, node: str, offer: _Offer, count: int) -> list[Device]:
        held = [holding.device for holding in self.held(node)]
        on_card, taken = Counter(device.card for device in held), {device.id for device in held}
        played = self._fleet.get(node)
        unwell = played.unwell_gpus if played else set()
        left = [d for d in offer.devices if d.id not in taken and d.card not in unwell]
        chosen: list[Device] = []
        while left and len(chosen) < count:
            best = min(left, key=lambda d: on_card[d.card]) if offer.spreads else left[0]
            left.remove(best)
            chosen.append(best)
            on_card[best.card] += 1
        return chosen


def hami_cards(pod: Obj) -> list[list[tuple[str, int]]]:
    """Return the UUID and the memory in MiB of each card, by container, from the annotation of HAMi's scheduler.

    Any user who may write the pod can forge the annotation: entries that are no card are left out.
    """
    told = (pod["metadata"].get("annotations") or {}).get(ALLOCATED, "")
    return [[(uuid, int(memory)) for uuid, memory in _CARD.findall(part)] for part in told.split(";")]


def _offer(gpus: Obj, found: tuple[Card, ...]) -> _Offer:
    offered = tuple(device for card in found for device in _devices(way(gpus), card))
    return _Offer(next(iter(resources(gpus))), offered, spreads=way(gpus) in SHARED)


def _devices(shared: str, card: Card) -> list[Device]:
    if shared == "mig":
        return [Device(one.uuid, card.index, one.uuid) for one in card.instances]
    if shared in SHARED:
        return [Device(f"{card.uuid}::{n}", card.index, card.uuid) for n in range(card.shares)]
    if shared == "hami":
        return [Device(f"{card.uuid}-{n}", card.index, None) for n in range(card.shares)]
    return [Device(card.uuid, card.index, card.uuid)]
