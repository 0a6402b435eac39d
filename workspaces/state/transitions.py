"""States of a workspace, and the one table of how they follow each other.

A state is what is wanted (`desired`), how far that is (`phase`), and why the current run is being taken down (`ending`;
empty while none is). While a run starts, `step` counts its ten steps. Only `move` and `advance_step` change these
fields, and both refuse what the table does not have. docs/development/states.md draws it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from workspaces.models import STEPS, Desired, Ending, Phase, Step, Workspace


class ImpossibleTransition(Exception):
    """A fault of ours: the table has no such transition from this state."""


class Move(StrEnum):
    WANT_RUNNING = "want running"
    WANT_STOPPED = "want stopped"
    WANT_DELETED = "want deleted"
    QUEUE = "queue"
    ADMIT = "admit"
    BECOME_READY = "become ready"
    WITHDRAW = "withdraw"
    END_STOP = "end: stop"
    END_RESTART = "end: restart"
    END_INTERRUPTED = "end: interrupted"
    END_REQUEUE = "end: requeue"
    END_RECLAIM = "end: reclaim"
    END_FAILED = "end: failed"
    END_DELETE = "end: delete"
    PROVE_END = "prove the end"
    REST = "rest"
    REFUSE = "refuse"
    BE_GONE = "be gone"


NONE: frozenset[str] = frozenset([""])
SOME: frozenset[str] = frozenset(Ending)
ANY = NONE | SOME
RUNNING, STOPPED, DELETED = (frozenset([desired]) for desired in Desired)
ALIVE = frozenset([Phase.STARTING, Phase.READY])


@dataclass(frozen=True)
class Rule:
    """Transition: the states it may begin in, and the fields that it sets. None: the field stays."""

    made_by: str
    desired: Collection[str]
    phases: Collection[Phase]
    endings: Collection[str]
    to_desired: Desired | None = None
    to_phase: Phase | None = None
    to_ending: str | None = None


TABLE: dict[Move, Rule] = {
    Move.WANT_RUNNING: Rule(
        "start", STOPPED, [Phase.STOPPED, Phase.FAILED, Phase.STOPPING], ANY, to_desired=Desired.RUNNING
    ),
    Move.WANT_STOPPED: Rule(
        "stop, and what ends a run for good", RUNNING | STOPPED, list(Phase), ANY, to_desired=Desired.STOPPED
    ),
    Move.WANT_DELETED: Rule("delete", list(Desired), list(Phase), ANY, to_desired=Desired.DELETED),
    Move.QUEUE: Rule(
        "launch, start, another size, or the end of the last run",
        RUNNING,
        [Phase.WAITING, Phase.STARTING, Phase.STOPPING, Phase.STOPPED, Phase.FAILED],
        NONE,
        to_phase=Phase.WAITING,
    ),
    Move.ADMIT: Rule("the queue", RUNNING, [Phase.WAITING], NONE, to_phase=Phase.STARTING),
    Move.BECOME_READY: Rule("the cluster", RUNNING, [Phase.STARTING], NONE, to_phase=Phase.READY),
    Move.WITHDRAW: Rule("stop, while it waits", STOPPED, [Phase.WAITING], NONE, to_phase=Phase.STOPPED),
    Move.END_STOP: Rule(
        "stop, lifetime, budget, drain",
        STOPPED,
        [Phase.WAITING, Phase.STARTING, Phase.READY, Phase.STOPPING],
        ANY - {Ending.FAILED},
        to_phase=Phase.STOPPING,
        to_ending=Ending.STOP,
    ),
    Move.END_RESTART: Rule(
        "restart", RUNNING, ALIVE, NONE, to_phase=Phase.STOPPING, to_ending=Ending.RESTART
    ),
    Move.END_INTERRUPTED: Rule(
        "the cluster", RUNNING, ALIVE, NONE, to_phase=Phase.STARTING, to_ending=Ending.INTERRUPTED
    ),
    Move.END_REQUEUE: Rule(
        "the cluster", RUNNING, ALIVE, NONE, to_phase=Phase.WAITING, to_ending=Ending.REQUEUE
    ),
    Move.END_RECLAIM: Rule(
        "a preemption", RUNNING, ALIVE, NONE, to_phase=Phase.STOPPING, to_ending=Ending.RECLAIM
    ),
    Move.END_FAILED: Rule(
        "a start that failed", STOPPED, ALIVE, NONE, to_phase=Phase.FAILED, to_ending=Ending.FAILED
    ),
    Move.END_DELETE: Rule(
        "delete", DELETED, list(Phase), ANY, to_phase=Phase.DELETING, to_ending=Ending.DELETE
    ),
    Move.PROVE_END: Rule("the take-down", list(Desired), list(Phase), SOME, to_ending=""),
    Move.REST: Rule("the take-down", STOPPED, [Phase.STOPPING], NONE, to_phase=Phase.STOPPED),
    Move.REFUSE: Rule(
        "the queue",
        RUNNING,
        [Phase.WAITING, Phase.STARTING, Phase.STOPPING, Phase.FAILED],
        NONE,
        to_desired=Desired.STOPPED,
        to_phase=Phase.FAILED,
    ),
    Move.BE_GONE: Rule("the take-down", DELETED, [Phase.DELETING], NONE, to_phase=Phase.DELETED),
}


def move(workspace: Workspace, wanted: Move) -> None:
    """Set the fields of the transition. Inside `changing`, or before the row is first saved.

    Raises ImpossibleTransition, and changes nothing, if the table does not have it from the present state.
    """
    rule, state = TABLE[wanted], (workspace.desired, workspace.phase, workspace.ending)
    if not (state[0] in rule.desired and state[1] in rule.phases and state[2] in rule.endings):
        raise ImpossibleTransition(f"{wanted} from {state}")
    if rule.to_desired is not None:
        workspace.desired = rule.to_desired
    if rule.to_phase is not None:
        workspace.phase = rule.to_phase
    if rule.to_ending is not None:
        workspace.ending = rule.to_ending
    if wanted is Move.QUEUE:
        workspace.step = Step.REQUEST


def end_by(ending: Ending) -> Move:
    return Move[f"END_{ending.name}"]


def advance_step(workspace: Workspace) -> None:
    """Begin the next step. Raises ImpossibleTransition after the last."""
    index = STEPS.index(Step(workspace.step)) + 1
    if index == len(STEPS):
        raise ImpossibleTransition(f"a step after {workspace.step}")
    workspace.step = STEPS[index]
