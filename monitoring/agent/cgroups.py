"""Processes of pods that the kernel ended because a memory limit was reached, by the counters of the node's cgroups.

Version 2 counts in `memory.events` of each cgroup, those of its children with them; version 1 in
`memory.oom_control`, without them. Both name the count `oom_kill`. The kubelet reports the end of a container's first
process alone; a child that is ended shows here only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .pods import owner_in
from .schema import OomKills

# Where deploy/kubernetes/agent.yaml mounts the node's cgroups.
FOLDER = Path("/host/sys/fs/cgroup")
FILES = ("memory.events", "memory.oom_control")
# Folders between the root and pods: kubepods.slice, kubepods-burstable.slice, and kubelet.slice where kind runs nodes.
ON_THE_WAY = ("kubepods", "burstable", "besteffort", "kubelet")
DEEPEST = 6
MOST = 200
# A report may be lost: counts that did not change are reported again after this time.
AGAIN_SECONDS = 60.0

Key = tuple[str, str]  # pod, container or ""


class OomCounts:
    """Counts of the node's pods. Each change is reported once, and all counts again from time to time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told: dict[Key, int] = {}
        self._again_at = 0.0

    def news(self) -> list[OomKills] | None:
        """Return counts above zero that changed since the last call; None if the cgroups are not seen."""
        top = top_of(self._folder)
        if top is None:
            return None
        found = dict(counts(top))
        if time.monotonic() >= self._again_at:
            self._again_at, self._told = time.monotonic() + AGAIN_SECONDS, {}
        changed = [key for key, kills in found.items() if kills > 0 and self._told.get(key) != kills]
        self._told = {key: found[key] for key in found if key in self._told or key in changed[:MOST]}
        return [entry(key, found[key]) for key in changed[:MOST]]


def entry(key: Key, kills: int) -> OomKills:
    pod, container = key
    told: OomKills = {"pod_uid": pod, "kills": kills}
    return {**told, "container_id": container} if container else told


def top_of(folder: Path) -> Path | None:
    """Return the folder of the memory controller: the root itself in version 2, `memory` in version 1."""
    for top in (folder, folder / "memory"):
        with suppress(OSError):
            if any(is_on_the_way(one.name) for one in top.iterdir() if one.is_dir()):
                return top
    return None


def is_on_the_way(name: str) -> bool:
    return any(word in name for word in ON_THE_WAY)


def counts(folder: Path, way: str = "", depth: int = 0) -> Iterator[tuple[Key, int]]:
    """Yield the count of each pod and of its containers. What ends while it is read is left out."""
    try:
        inside = sorted(one for one in folder.iterdir() if one.is_dir())
    except OSError:
        return
    for one in inside:
        path = f"{way}/{one.name}"
        owner = owner_in(path)
        if not owner and not is_on_the_way(one.name):
            continue
        if owner and (kills := kills_in(one)) is not None:
            yield (owner["pod_uid"], owner.get("container_id", "")), kills
        if "container_id" not in owner and depth < DEEPEST:
            yield from counts(one, path, depth + 1)


def kills_in(folder: Path) -> int | None:
    """Return the number of processes that the kernel ended there; None if no file tells it."""
    for name in FILES:
        with suppress(OSError, ValueError):
            for line in (folder / name).read_text(errors="replace").splitlines():
                word, _, number = line.partition(" ")
                if word == "oom_kill":
                    return int(number)
    return None
