"""The kill matrix as a table: at which moments of which operations a part of Berth is killed.

A moment lies just before or just after a step's success is reported. “Just before” is one of two things:

- the call to the cluster that makes the step's evidence is under way: not yet done (`Held` before), or done and not
  yet answered (`Held` after); or the cluster takes its time (`Stalled`);
- if no call of ours makes the evidence: the transaction that reports the step is about to be committed (`Gated`).

Steps reported in one transaction are one moment, named by its last event:

- a node mounts before it pulls, so `image` is reported with `mounts`;
- the address exists before the pod is ready, so `started` and `endpoint` are reported with `ready`;
- a restart keeps units, disks, Service and Secret: its `request` is reported with `admission`, and `disk` with
  `container`;
- a failed start is like a launch until its container cannot be made; its own moments begin there.

The watcher makes all calls to the cluster and writes a run's progress; the worker admits. A part takes part in no
transaction of another. For it, a moment just before such a commit is the same as the moment after the previous commit,
and is listed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

When = Literal["before", "after"]
Part = Literal["web", "worker", "watcher"]
PARTS: tuple[Part, ...] = ("web", "worker", "watcher")
LOOKS = 3  # a held call occupies a thread of the watcher, and a person has three requests answered at once


@dataclass(frozen=True)
class Held:
    """A call to the cluster that is under way: undone, or done and not answered."""

    when: When
    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} of {self.resource} {'undone' if self.when == 'before' else 'done, not answered'}"


@dataclass(frozen=True)
class Stalled:
    """A step of the cluster's storage that does not finish."""

    volume: str

    def __str__(self) -> str:
        return f"waiting for the {self.volume}"


@dataclass(frozen=True)
class Gated:
    """The transaction that writes `code` is not committed yet. `by`: the part that runs it."""

    code: str
    by: Part = "watcher"

    def __str__(self) -> str:
        return f"before {self.code} is committed"


@dataclass(frozen=True)
class Told:
    """The transaction that writes `code` was just committed."""

    code: str
    by: Part | None = "watcher"

    def __str__(self) -> str:
        return f"{self.code} is committed"


Moment = Held | Stalled | Gated | Told


@dataclass(frozen=True)
class Operation:
    name: str
    ends: str  # the phase that it leads to
    begins: Literal["nothing", "ready"]
    moments: tuple[Moment, ...]


def around(code: str, by: Part = "watcher") -> tuple[Moment, ...]:
    return Gated(code, by), Told(code, by)


def call(verb: str, resource: str) -> tuple[Moment, ...]:
    return Held("before", verb, resource), Held("after", verb, resource)


WAYS_IN_MADE: tuple[Moment, ...] = (*call("patch", "secrets"), *call("patch", "services"))
CONTAINER_MADE: tuple[Moment, ...] = (*call("create", "pods"), Told("container_done"))
POD_COMES_UP: tuple[Moment, ...] = (
    *around("scheduled_done"),
    Stalled("mount"),
    *around("mounts_done"),
    *around("ready"),
)
POD_GOES: tuple[Moment, ...] = (*call("delete", "pods"), *call("patch", "pods"))

OPERATIONS = (
    Operation(
        "launch",
        "ready",
        "nothing",
        (
            *around("requested", "web"),
            *around("admitted", "worker"),
            *call("create", "persistentvolumeclaims"),
            *WAYS_IN_MADE,
            Stalled("provision"),
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
            Held("before", "delete", "secrets"),
            Held("after", "delete", "services"),
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
        """True if the moment cannot wait for others: it passes at once, or it holds locks that they need."""
        return isinstance(self.moment, Gated | Told)

    @property
    def takes_a_look(self) -> bool:
        return isinstance(self.moment, Held) or getattr(self.moment, "by", None) == "watcher"


Group = tuple[Case, ...]


# Moments at which everything is killed, database and cluster too. Other tests check how those two recover.
OF_A_POWER_LOSS = (
    ("launch", Held("after", "create", "pods")),
    ("delete", Held("before", "delete", "persistentvolumeclaims")),
    ("stop", Told("stop_requested", "web")),
)


def power_loss() -> Group:
    operations = {operation.name: operation for operation in OPERATIONS}
    return tuple(Case(operations[name], moment) for name, moment in OF_A_POWER_LOSS)


def cases(*killed: Part) -> Iterator[Case]:
    """Yield the cases for a kill of these parts."""
    for operation in OPERATIONS:
        for moment in operation.moments:
            if not isinstance(moment, Gated) or moment.by in killed:
                yield Case(operation, moment)


def groups(*killed: Part) -> list[Group]:
    """Group the cases by kill: those that can wait, as many as there are threads for them, and last one that cannot."""
    waiting = [case for case in cases(*killed) if not case.is_trigger]
    triggers = [case for case in cases(*killed) if case.is_trigger]
    found = [(*take(waiting, LOOKS - trigger.takes_a_look), trigger) for trigger in triggers]
    while waiting:
        found.append(tuple(take(waiting, LOOKS)))
    return found


def take(waiting: list[Case], threads: int) -> list[Case]:
    """Remove and return the first cases that need no more than `threads` threads."""
    taken: list[Case] = []
    for case in list(waiting):
        if sum(one.takes_a_look for one in [*taken, case]) > threads:
            break
        taken.append(case)
        waiting.remove(case)
    return taken
