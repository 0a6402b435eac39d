"""Runtime protocol of the kubelet: simulated pods and process pods both implement it."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from devcluster.kubelet.processes.sessions import Session, Wish
from devcluster.kubelet.processes.usage import Usage
from devcluster.nodes import Image
from devcluster.resources import Obj


def container_id() -> str:
    """Return a new id, in the form of the container runtimes."""
    return f"devcluster://{secrets.token_hex(32)}"


class CannotRun(Exception):
    """Failure to make a container; the kubelet reports it and tries again."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason, self.message = reason, message


@dataclass(frozen=True)
class Mount:
    """Mount of a container. `source` is a folder or file of this machine, or None for memory of `size_bytes`."""

    target: str
    source: Path | None
    """What a pod may not write to on the way there."""
    read_only: bool = False
    size_bytes: int = 0
    disk: bool = False
    """A volume whose files keep the image's uid on disk, whichever pod mounts it."""
    sub: str = ""
    """Where below `source`; pods may write to all of that, so that it is opened with care."""


@dataclass(frozen=True)
class Ending:
    """End of a simulated container by itself."""

    seconds: float
    code: int


@dataclass(frozen=True)
class ContainerPlan:
    """Full description of one start of a container."""

    pod_uid: str
    name: str
    hostname: str
    address: str
    image: Image
    command: list[str]
    env: Mapping[str, str]
    working_dir: str
    uid: int
    gid: int
    groups: list[int]
    host_uid: int
    """Which uid of this machine its uid is."""
    memory_bytes: int
    log: Path
    mounts: list[Mount] = field(default_factory=list)
    ending: Ending | None = None
    """If it is only played."""
    cpu_cores: float = 0.0
    """Its limit, or what it asks for."""


@dataclass(frozen=True)
class Exit:
    code: int
    reason: str
    message: str = ""


class Container(Protocol):
    id: str
    began: float
    """By this machine's steady clock."""

    async def wait(self) -> Exit: ...

    async def stop(self, grace_seconds: float) -> None: ...

    async def execute(self, wish: Wish) -> Session:
        """Run a further command in the container; raise CannotExecute if that is impossible."""
        ...


class Runtime(Protocol):
    real: bool
    """Whether processes run, so that probes, volumes and images are of consequence."""

    async def start(self, plan: ContainerPlan) -> Container: ...

    async def measure(self, containers: Sequence[Container]) -> dict[str, Usage]:
        """Return the use of each container, by its id."""
        ...

    async def forget(self, pod: Obj) -> None:
        """Remove the leftovers of a pod that has ended."""

    async def close(self) -> None:
        """End all containers at once, as a power loss would."""
