"""Memory limits by control groups, version 1 or 2; if neither can be written, the caller watches memory itself."""

import contextlib
import hashlib
import os
import uuid
from pathlib import Path

_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


class MemoryGroup:
    """Control group of one container."""

    def __init__(self, path: Path, limit_bytes: int):
        self._path, self._v1 = path, path.is_relative_to(_V1)
        path.mkdir(parents=True, exist_ok=True)
        if self._v1:
            (path / "memory.limit_in_bytes").write_text(str(limit_bytes))
        else:
            (path / "memory.max").write_text(str(limit_bytes))
            (path / "memory.oom.group").write_text("1")
        self.procs = path / "cgroup.procs"

    def kills(self) -> int:
        """Return how many processes of the group the kernel killed for lack of memory."""
        name = "memory.oom_control" if self._v1 else "memory.events"
        with contextlib.suppress(OSError):
            for line in (self._path / name).read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self._path.rmdir()


class MemoryGroups:
    """Control groups of one devcluster, below one of its own."""

    def __init__(self, state: Path):
        name = "devcluster-" + hashlib.sha256(str(state).encode()).hexdigest()[:12]
        self._base = self._usable(name)

    @staticmethod
    def _usable(name: str) -> Path | None:
        if os.geteuid() != 0:
            return None
        with contextlib.suppress(OSError):
            if (_V1 / "memory.limit_in_bytes").exists():
                base = _V1 / name
                base.mkdir(exist_ok=True)
                return base
            if "memory" in (_V2 / "cgroup.controllers").read_text():
                (_V2 / "cgroup.subtree_control").write_text("+memory")
                base = _V2 / name
                base.mkdir(exist_ok=True)
                (base / "cgroup.subtree_control").write_text("+memory")
                return base
        return None

    def make(self, pod_uid: str, limit_bytes: int) -> MemoryGroup | None:
        """Make a new group for each start, so that kills in an earlier start are not counted."""
        if self._base is None or not limit_bytes:
            return None
        with contextlib.suppress(OSError):
            return MemoryGroup(self._base / f"{pod_uid}-{uuid.uuid4().hex[:12]}", limit_bytes)
        return None

    def sweep(self, pod_uid: str = "") -> None:
        """Remove the empty groups of one pod, or of all."""
        if self._base is None or not self._base.exists():
            return
        for folder in self._base.glob(f"{pod_uid}*"):
            if folder.is_dir():
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def clear(self) -> None:
        """Remove all groups: at the end, and at the start those that a killed instance left."""
        self.sweep()
        if self._base is not None:
            with contextlib.suppress(OSError):
                self._base.rmdir()
