"""Processes on each card at a moment: of running containers that hold the card, by the life of their pod. Pure."""

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from devcluster.gpuplay.devices import Holding, hami_cards
from devcluster.gpuplay.hardware import Card
from devcluster.gpuplay.lives import ANNOTATION, Life, Use
from devcluster.resources import Obj
from devcluster.values.clock import parse

PodOf = Callable[[Holding], Obj | None]
CoresOf = Callable[[str], float]
"""How many cores a pod, by its uid, keeps busy."""


@dataclass(frozen=True)
class Process:
    """Process on a GPU. `instance` is the UUID of its MIG instance."""

    pid: int
    pod_uid: str
    container_id: str
    instance: str | None
    use: Use


def processes(
    held: Iterable[Holding], cards: tuple[Card, ...], pod_of: PodOf, cores_of: CoresOf, life: Life, at: float
) -> dict[str, list[Process]]:
    """Return the processes by their card's UUID. `life` is the default for pods that name none."""
    found: defaultdict[str, list[Process]] = defaultdict(list)
    places: defaultdict[tuple[str, str], int] = defaultdict(int)
    for holding in held:
        pod = pod_of(holding)
        running = _running(pod, holding.container) if pod else None
        if pod is None or running is None:
            continue
        place = places[holding.pod_uid, holding.container]
        places[holding.pod_uid, holding.container] += 1
        share = _share(holding, cards, pod, place)
        if share is None:
            continue
        card, memory_mib = share
        seed = zlib.crc32(f"{holding.pod_uid}/{holding.container}".encode())
        seconds = max(at - parse(running["started"]).timestamp(), 0.0)
        use = _life(pod, life).at(seconds, memory_mib, cores_of(holding.pod_uid), seed % 1000)
        if use:
            instance = holding.device.uuid if card.instances else None
            container_id = running["container"].rpartition("/")[2]
            process = Process(10_000 + seed % 4_000_000, holding.pod_uid, container_id, instance, use)
            found[card.uuid].append(process)
    return found


def _running(pod: Obj, container: str) -> dict[str, str] | None:
    for status in pod.get("status", {}).get("containerStatuses") or []:
        if status["name"] == container and (running := status["state"].get("running")):
            return {"started": running["startedAt"], "container": status.get("containerID", "")}
    return None


def _share(holding: Holding, cards: tuple[Card, ...], pod: Obj, place: int) -> tuple[Card, float] | None:
    """Return the card and the container's memory on it in MiB; `place` numbers the container's devices."""
    device = holding.device
    if device.uuid is None:
        return _by_hami(holding.container, cards, pod, place)
    card = cards[device.card]
    for one in card.instances:
        if one.uuid == device.uuid:
            return card, one.memory_mib
    return card, card.memory_mib / card.shares


def _by_hami(container: str, cards: tuple[Card, ...], pod: Obj, place: int) -> tuple[Card, float] | None:
    names = [c["name"] for c in pod["spec"]["containers"]]
    given = dict(zip(names, hami_cards(pod), strict=False)).get(container, [])
    if place >= len(given):
        return None
    uuid, memory_mib = given[place]
    card = next((card for card in cards if card.uuid == uuid), None)
    return (card, memory_mib) if card else None


def _life(pod: Obj, otherwise: Life) -> Life:
    """Return the life in the pod's annotation, or the default: a user may have written nonsense there."""
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        return Life.read(text) if text else otherwise
    except ValueError:
        return otherwise
