"""Things that Berth leaves in a cluster when it is taken out of use: pods that can end without it, and all data.

Each pod of Berth's carries a finalizer that only Berth removes; without Berth a deleted pod, and its namespace, would
stay `Terminating` for ever. Removing it changes nothing else: pods run on, and volumes keep what is in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from clusters.api import Api
from clusters.labels import instance_selector
from clusters.pods.ends import is_held, remove_finalizer, terminal

Object = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """A PVC that stays. `is_safe`: its data outlive the PVC, because its PersistentVolume has the policy Retain."""

    namespace: str
    name: str
    size: str
    volume: str
    is_safe: bool


@dataclass
class Left:
    """Things of this installation in one cluster."""

    namespaces: list[str] = field(default_factory=list)
    held: list[Object] = field(default_factory=list)
    running: int = 0
    kept: list[Kept] = field(default_factory=list)


def look(api: Api) -> Left:
    """Return what of this installation is in the cluster; change nothing."""
    mine = instance_selector()
    left = Left(sorted(body["metadata"]["name"] for body in api.each("Namespace", labels=mine)))
    for pod in _pods(api):
        left.running += not terminal(pod)
        if is_held(pod):
            left.held.append(pod)
    policies = {
        one["metadata"]["name"]: one["spec"].get("persistentVolumeReclaimPolicy", "")
        for one in api.each("PersistentVolume")
    }
    for claim in api.each("PersistentVolumeClaim", labels=mine):
        bound = claim["spec"].get("volumeName", "")
        size = claim["spec"]["resources"]["requests"].get("storage", "")
        of = claim["metadata"]
        left.kept.append(Kept(of["namespace"], of["name"], size, bound, policies.get(bound) == "Retain"))
    return left


def let_go(left: Left, api: Api) -> int:
    """Remove Berth's finalizer from the pods. Return how many there are still with it: others may be made meanwhile."""
    for pod in left.held:
        remove_finalizer(pod, api)
    return sum(map(is_held, _pods(api)))


def _pods(api: Api) -> Iterator[Object]:
    return api.each("Pod", labels=instance_selector())
