"""HAMi's scheduler: kube-scheduler with an extender that knows the free memory and cores of each card. Pure.

It reads a node's cards and its pods' allocations from annotations, gives the reasons of a refusal card by card, and
chooses node and cards by its own policies, which override other preferences of pods. A pod that asks for HAMi's
resources is scheduled by HAMi, as its webhook would arrange.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass

from devcluster.gpus import HAMI_MANAGED, HAMI_REGISTER
from devcluster.resources import Obj
from devcluster.scheduling.fitting import NodeState, Rejection
from devcluster.values.quantity import milli

NAME = "hami-scheduler"
ALLOCATED = "hami.io/vgpu-devices-allocated"
CORDON = "hami.io/device-cordon"
GPU_POLICY, NODE_POLICY = "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy"
_GPU, _MEMORY, _PERCENT, _CORES = (
    f"nvidia.com/{name}" for name in ("gpu", "gpumem", "gpumem-percentage", "gpucores")
)


@dataclass
class _Card:
    """Card as its node announces it, less the shares of pods."""

    body: Obj
    cordoned: bool
    pods: int = 0
    memory: int = 0
    cores: int = 0

    @property
    def fullness(self) -> float:
        slots, memory, cores = (int(self.body[name]) for name in ("count", "devmem", "devcore"))
        return self.pods / slots + self.memory / memory + self.cores / cores

    def refuses(self, memory: int, cores: int) -> str:
        """Return why the card refuses such a share, or an empty string. Checks are in HAMi's order."""
        said = self.body
        if not said.get("health"):
            return "CardNotHealth"
        if self.cordoned:
            return "CardCordoned"
        if said["count"] <= self.pods:
            return "CardTimeSlicingExhausted"
        if said["devmem"] - self.memory < memory:
            return "CardInsufficientMemory"
        if said["devcore"] - self.cores < cores:
            return "CardInsufficientCore"
        if cores == 100 and self.pods:
            return "ExclusiveDeviceAllocateConflict"
        if cores == 0 and self.cores == said["devcore"]:
            return "CardComputeUnitsExhausted"
        return ""


@dataclass(frozen=True)
class _Share:
    cards: int
    memory: int
    percent: int
    cores: int

    def memory_of(self, card: _Card) -> int:
        return self.memory or int(card.body["devmem"]) * self.percent // 100


def owns(pod: Obj) -> bool:
    return pod["spec"].get("schedulerName") == NAME or any(
        not HAMI_MANAGED.isdisjoint(_limits(container)) for container in pod["spec"]["containers"]
    )


def rejection(pod: Obj, state: NodeState) -> Rejection | None:
    found = _allocate(pod, state)
    return Rejection((found,), resolvable=False) if isinstance(found, str) else None


def best(pod: Obj, states: list[NodeState]) -> NodeState:
    """Return the node that the pod's policy for nodes prefers: binpack, or spread."""
    fullest = _annotations(pod).get(NODE_POLICY, "binpack") != "spread"
    ranked = sorted(states, key=lambda state: sum(card.fullness for card in _cards(state)), reverse=fullest)
    return ranked[0]


def allocation(pod: Obj, state: NodeState) -> dict[str, str]:
    """Return the annotations that record the pod's cards for the node's device plugin and all other readers."""
    found = _allocate(pod, state)
    if isinstance(found, str):
        return {}
    at = str(int(time.time()))
    return {
        "hami.io/vgpu-node": state.name,
        "hami.io/vgpu-time": at,
        "hami.io/bind-phase": "success",
        "hami.io/bind-time": at,
        ALLOCATED: found.text,
    }


@dataclass(frozen=True)
class _Given:
    text: str


def _allocate(pod: Obj, state: NodeState) -> _Given | str:
    """Return the cards for each container, or the reason why the node has none."""
    cards, given = _cards(state), []
    if not cards and any(_share(container) for container in pod["spec"]["containers"]):
        return "node unregistered"
    fullest = _annotations(pod).get(GPU_POLICY, "spread") == "binpack"
    for container in pod["spec"]["containers"]:
        share = _share(container)
        if share is None:
            given.append("")
            continue
        if share.cards > len(cards):
            return "NodeInsufficientDevice"
        reasons: Counter[str] = Counter()
        chosen = []
        for card in sorted(cards, key=lambda card: card.fullness, reverse=fullest):
            why = card.refuses(share.memory_of(card), share.cores)
            if why:
                reasons[why] += 1
            else:
                chosen.append(card)
        if len(chosen) < share.cards:
            if chosen:
                reasons["AllocatedCardsInsufficientRequest"] = len(chosen)
            return ", ".join(sorted(f"{count}/{len(cards)} {why}" for why, count in reasons.items()))
        given.append("".join(_take(card, share) for card in chosen[: share.cards]))
    return _Given("".join(f"{part};" for part in given))


def _take(card: _Card, share: _Share) -> str:
    memory = share.memory_of(card)
    card.pods, card.memory, card.cores = card.pods + 1, card.memory + memory, card.cores + share.cores
    return f"{card.body['id']},NVIDIA,{memory},{share.cores}:"


def _cards(state: NodeState) -> list[_Card]:
    annotations = _annotations(state.node)
    cordoned = {uid.strip() for uid in annotations.get(CORDON, "").split(",")}
    announced = json.loads(annotations.get(HAMI_REGISTER, "[]"))
    cards = {body["id"]: _Card(body, body["id"] in cordoned) for body in announced}
    for pod in state.pods.values():
        for part in _annotations(pod).get(ALLOCATED, "").replace(";", ":").split(":"):
            uid, _, amounts = part.partition(",")
            if card := cards.get(uid):
                _kind, memory, cores = amounts.split(",")
                card.pods += 1
                card.memory += int(memory)
                card.cores += int(cores)
    return list(cards.values())


def _share(container: Obj) -> _Share | None:
    limits = _limits(container)
    if _GPU not in limits and HAMI_MANAGED.isdisjoint(limits):
        return None
    asked = {name: milli(limits.get(name, "0")) // 1000 for name in (_MEMORY, _PERCENT, _CORES)}
    percent = asked[_PERCENT] or (0 if asked[_MEMORY] else 100)
    whole = percent == 100 and _CORES not in limits
    return _Share(
        milli(limits.get(_GPU, "1")) // 1000, asked[_MEMORY], percent, 100 if whole else asked[_CORES]
    )


def _limits(container: Obj) -> dict[str, str]:
    return (container.get("resources") or {}).get("limits") or {}


def _annotations(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}
