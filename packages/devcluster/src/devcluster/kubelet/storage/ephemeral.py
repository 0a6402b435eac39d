"""Writes of a pod outside its volumes: emptyDirs, /tmp, its home, logs; their limits and their measurement.

As root, all of these but the logs lie in a file system of the pod's own, a file that grows up to a quarter more than
the pod's limit. So no pod fills this machine's disk between two checks, and a check costs next to nothing while the
pod is well below its limits. Without root they are only measured.
"""

import asyncio
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from devcluster.kubelet.storage.disks import make_file_system, run, unmount
from devcluster.resources import Obj
from devcluster.values.quantity import canonical, show, whole

LOOK_SECONDS = 2.0
UNLIMITED_BYTES = 4 * 2**30
"""What a pod gets that names no limit."""
_ROOM_BYTES = 64 * 2**20


@dataclass
class Use:
    """Bytes in use by each emptyDir on disk, and by each container with its logs."""

    empty_dirs: dict[str, int] = field(default_factory=dict)
    containers: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.empty_dirs.values()) + sum(self.containers.values())


def empty_dirs(pod: Obj) -> dict[str, str]:
    """Return the limits of the pod's emptyDirs on disk, by name; empty if it has none."""
    found = {v["name"]: v["emptyDir"] for v in pod["spec"].get("volumes") or [] if "emptyDir" in v}
    return {name: e.get("sizeLimit", "") for name, e in found.items() if e.get("medium") != "Memory"}


def limits(pod: Obj) -> dict[str, str]:
    """Return the containers' limits of ephemeral storage, by name."""
    found = {c["name"]: c.get("resources", {}).get("limits", {}) for c in pod["spec"]["containers"]}
    return {name: limit["ephemeral-storage"] for name, limit in found.items() if "ephemeral-storage" in limit}


def capacity_bytes(pod: Obj) -> int:
    """Return how many bytes the pod can write at most."""
    allowed = sum(whole(limit) for limit in limits(pod).values())
    if not allowed:
        allowed = UNLIMITED_BYTES + sum(whole(size) for size in empty_dirs(pod).values() if size)
    return allowed + allowed // 4 + _ROOM_BYTES


def excess(pod: Obj, use: Use) -> str:
    """Return why the pod must be evicted, in the kubelet's words and order; empty within its limits."""
    for name, size in empty_dirs(pod).items():
        if size and use.empty_dirs.get(name, 0) > whole(size):
            return f'Usage of EmptyDir volume "{name}" exceeds the limit "{canonical(size)}". '
    allowed = limits(pod)
    total = sum(whole(limit) for limit in allowed.values())
    if allowed and use.total > total:
        shown = show(total * 1000, like=next(iter(allowed.values())))
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {shown}. "
    for name, limit in allowed.items():
        if use.containers.get(name, 0) > whole(limit):
            return f'Container {name} exceeded its local ephemeral storage limit "{canonical(limit)}". '
    return ""


class Scratch:
    """Scratch space of all pods of this machine."""

    def __init__(self, state: Path):
        self._folder, self._logs = state / "scratch", state / "logs"
        self._root = os.geteuid() == 0
        self._mounted: set[str] = set()

    def folder(self, pod_uid: str) -> Path:
        return self._folder / pod_uid

    async def make(self, pod: Obj) -> None:
        uid = pod["metadata"]["uid"]
        if self._root and uid not in self._mounted:
            await asyncio.to_thread(self._mount, uid, capacity_bytes(pod))
            self._mounted.add(uid)

    def _mount(self, uid: str, size_bytes: int) -> None:
        file, folder = self._file(uid), self.folder(uid)
        folder.mkdir(parents=True, exist_ok=True)
        make_file_system(file, size_bytes)
        run("mount", "-o", "loop,nosuid,nodev", str(file), str(folder))

    def _file(self, uid: str) -> Path:
        return self._folder / f"{uid}.img"

    def remove(self, uid: str) -> None:
        """Delete the pod's scratch space with its contents."""
        if uid in self._mounted:
            self._mounted.discard(uid)
            unmount(self.folder(uid))
        self._file(uid).unlink(missing_ok=True)
        shutil.rmtree(self.folder(uid), ignore_errors=True)

    def close(self) -> None:
        for uid in list(self._mounted):
            self.remove(uid)

    async def excess(self, pod: Obj) -> str:
        """Return the reason for an eviction. Count the files only if the total is above the smallest limit."""
        named = [whole(size) for size in (*empty_dirs(pod).values(), *limits(pod).values()) if size]
        if not named or (self._root and self._roughly(pod["metadata"]["uid"]) <= min(named)):
            return ""
        return excess(pod, await asyncio.to_thread(self._use, pod))

    def _roughly(self, uid: str) -> int:
        """Return an upper bound of the bytes in use."""
        seen = os.statvfs(self.folder(uid))
        return (seen.f_blocks - seen.f_bfree) * seen.f_frsize + used_bytes(self._logs / uid)

    def _use(self, pod: Obj) -> Use:
        uid = pod["metadata"]["uid"]
        folder, logs = self.folder(uid), self._logs / uid
        spec = pod["spec"]
        names = [c["name"] for c in (*spec["containers"], *(spec.get("initContainers") or []))]
        dirs = {name: used_bytes(folder / name) for name in empty_dirs(pod)}
        own = {n: used_bytes(folder / ".container" / n) + used_bytes(logs / n) for n in names}
        return Use(dirs, own)


def used_bytes(folder: Path) -> int:
    """Return the bytes of a tree that others may write to meanwhile."""
    total, left = 0, [folder]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(Path(entry.path))
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue
    return total
