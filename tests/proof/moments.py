"""The kill matrix as a table: at which moments of which operations a part of Berth is killed.

A moment lies just before a step's success is told, or at once after it was. Just before is one of two things:

- the call to the cluster that makes the step's evidence is under way: not yet done (`Held` before), or done and not
  yet answered (`Held` after); or the cluster takes its time (`Stalled`);
- where no call of ours makes the evidence, the transaction that tells the step is about to be committed (`Gated`).

What is told in one transaction is one moment, named by its last event:

- a node mounts before it pulls, so that `image` is told with `mounts`;
- the address is there before the pod is ready, so that `started` and `endpoint` are told with `ready`;
- a restart keeps units, disks and address: its `request` is told with `admission`, and `disk` with `container`;
- a start that fails is a launch until its container cannot be made: what is its own is told from there on.

The web process and the watcher take part in no transaction of the worker: for them a moment just before such a commit
is the moment after the commit before it, and stands in the table once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

When = Literal["before", "after"]
Part = Literal["web", "worker", "watcher"]
PARTS: tuple[Part, ...] = ("web", "worker", "watcher")
WORKERS = 2  # of a trial: a held call takes one of them


@dataclass(frozen=True)
class Held:
    """A call to the cluster is under way: undone, or done and not answered."""

    when: When
    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} of {self.resource} {'undone' if self.when == 'before' else 'done, not answered'}"


@dataclass(frozen=True)
class Stalled:
    """The cluster's storage is at this step of its own, and does not come on."""

    volume: str

    def __str__(self) -> str:
        return f"waiting for the {self.volume}"


@dataclass(frozen=True)
class Gated:
    """The transaction that tells this is not committed yet. `by` is the part whose transaction it is."""

    code: str
    by: Part = "worker"

    def __str__(self) -> str:
        return f"before {self.code} is committed"


@dataclass(frozen=True)
class Told:
    """The transaction that tells this was just committed."""

    code: str
    by: Part | None = "worker"

    def __str__(self) -> str:
        return f"{self.code} is committed"


Moment = Held | Stalled | Gated | Told


@dataclass(frozen=True)
class Operation:
    name: str
    ends: str  # the phase that it leads to
    begins: Literal["nothing", "ready"]
    moments: tuple[Moment, ...]


def around(code: str, by: Part = "worker") -> tuple[Moment, ...]:
    return Gated(code, by), Told(code, by)


def call(verb: str, resource: str) -> tuple[Moment, ...]:
    return Held("before", verb, resource), Held("after", verb, resource)


CONTAINER_MADE: tuple[Moment, ...] = (
    *call("patch", "statefulsets"),
    Held("before", "patch", "configmaps"),  # some of it is there, and the pod is not asked for yet
    Told("container_done"),
)
POD_COMES_UP: tuple[Moment, ...] = (
    *around("scheduled_done"),
    Stalled("mount"),
    *around("mounts_done"),
    *around("ready"),
)
POD_GOES: tuple[Moment, ...] = (*call("delete", "statefulsets"), *call("patch", "pods"))

OPERATIONS = (
    Operation(
        "launch",
        "ready",
        "nothing",
        (
            *around("requested", "web"),
            *around("admitted"),
            Stalled("provision"),
            *call("patch", "persistentvolumeclaims"),
            Told("disk_done"),
            *CONTAINER_MADE,
            *POD_COMES_UP,
        ),
    ),
    Operation(
        "restart",
        "ready",
        "ready",
        (*around("restarting", "web"), *POD_GOES, *around("admitted"), *CONTAINER_MADE, *POD_COMES_UP),
    ),
    Operation("stop", "stopped", "ready", (*around("stop_requested", "web"), *POD_GOES, *around("stopped"))),
    Operation(
        "delete",
        "deleted",
        "ready",
        (
            *around("delete_requested", "web"),
            *POD_GOES,
            *call("delete", "persistentvolumeclaims"),
            *around("deleted_with_files"),
        ),
    ),
    Operation("failed start", "failed", "nothing", (*around("given_up"), *POD_GOES, *around("released"))),
    Operation("reclaim", "ready", "ready", (Told("given_back", None), *POD_GOES, *around("waits_again"))),
)


@dataclass(frozen=True)
class Case:
    operation: Operation
    moment: Moment

    def __str__(self) -> str:
        return f"{self.operation.name}, {self.moment}"

    @property
    def is_trigger(self) -> bool:
        """It cannot wait for others: it is gone in a moment, or it waits with locks that they need."""
        return isinstance(self.moment, Gated | Told)

    @property
    def takes_a_worker(self) -> bool:
        return isinstance(self.moment, Held) or getattr(self.moment, "by", None) == "worker"


Group = tuple[Case, ...]


# Where everything is killed at once, the database and the cluster as well: how they bear that is seen elsewhere.
OF_A_POWER_LOSS = (
    ("launch", Held("after", "patch", "statefulsets")),
    ("delete", Held("before", "delete", "persistentvolumeclaims")),
    ("stop", Told("stop_requested", "web")),
)


def power_loss() -> Group:
    operations = {operation.name: operation for operation in OPERATIONS}
    return tuple(Case(operations[name], moment) for name, moment in OF_A_POWER_LOSS)


def cases(*killed: Part) -> Iterator[Case]:
    """All of them for a kill of these parts."""
    for operation in OPERATIONS:
        for moment in operation.moments:
            if not isinstance(moment, Gated) or moment.by in killed:
                yield Case(operation, moment)


def groups(*killed: Part) -> list[Group]:
    """Cases that one kill can serve: those that wait, as many as there are workers, and last the one that cannot."""
    waiting = [case for case in cases(*killed) if not case.is_trigger]
    triggers = [case for case in cases(*killed) if case.is_trigger]
    found = [(*take(waiting, WORKERS - trigger.takes_a_worker), trigger) for trigger in triggers]
    while waiting:
        found.append(tuple(take(waiting, WORKERS)))
    return found


def take(waiting: list[Case], workers: int) -> list[Case]:
    """The first that need no more workers than these; they leave the list."""
    taken: list[Case] = []
    for case in list(waiting):
        if sum(one.takes_a_worker for one in [*taken, case]) > workers:
            break
        taken.append(case)
        waiting.remove(case)
    return taken
