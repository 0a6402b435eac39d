"""The snapshot that the queue is decided on, and what is decided. Plain values: no database, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID

BACK_OFF_MOST = timedelta(minutes=10)
# From the warning of a borrowed run to its stop.
RECLAIM_GRACE = timedelta(minutes=10)


@dataclass(frozen=True)
class Card:
    """What one GPU has, or what is asked of one, where GPUs are cut by memory and cores (HAMi)."""

    memory_mib: int
    cores_percent: int
    slots: int = 1

    def holds(self, need: Card) -> bool:
        return (
            self.memory_mib >= need.memory_mib
            and self.cores_percent >= need.cores_percent
            and self.slots >= need.slots
        )

    def __sub__(self, other: Card) -> Card:
        return Card(
            self.memory_mib - other.memory_mib,
            self.cores_percent - other.cores_percent,
            self.slots - other.slots,
        )


@dataclass(frozen=True)
class Room:
    """Amounts of what a node has and a run takes. With cards, these say what fits, and units only what is counted."""

    units: int = 0
    cpu_millicores: int = 0
    memory_mib: int = 0
    pods: int = 0
    cards: tuple[Card, ...] = ()

    def holds(self, need: Room) -> bool:
        return (
            (self._holds_cards(need.cards) if need.cards else self.units >= need.units)
            and self.cpu_millicores >= need.cpu_millicores
            and self.memory_mib >= need.memory_mib
            and self.pods >= need.pods
        )

    def _holds_cards(self, asked: tuple[Card, ...]) -> bool:
        """A run asks the same of each of its cards, and two of them are never the same GPU."""
        return sum(card.holds(asked[0]) for card in self.cards) >= len(asked)

    def __sub__(self, other: Room) -> Room:
        return Room(
            self.units - other.units,
            self.cpu_millicores - other.cpu_millicores,
            self.memory_mib - other.memory_mib,
            self.pods - other.pods,
            _cards_less(self.cards, other.cards),
        )

    def with_back(self, back: Room, whole: Room) -> Room:
        """As it is once a run on it has given back what it took. No GPU comes to have more than in `whole`."""
        return Room(
            self.units + back.units,
            self.cpu_millicores + back.cpu_millicores,
            self.memory_mib + back.memory_mib,
            self.pods + back.pods,
            _cards_plus(self.cards, back.cards, whole.cards),
        )


def _cards_less(cards: tuple[Card, ...], asked: tuple[Card, ...]) -> tuple[Card, ...]:
    """Taken of the fullest that hold it, so that whole GPUs stay free; where none does, of the emptiest."""
    if not asked:
        return cards
    left = list(cards)
    fullest = sorted(range(len(left)), key=lambda at: (left[at].memory_mib, left[at].cores_percent, at))
    fitting = [at for at in fullest if left[at].holds(asked[0])]
    others = [at for at in reversed(fullest) if at not in fitting]
    for at, need in zip(fitting + others, asked, strict=False):
        left[at] = left[at] - need
    return tuple(left)


def _cards_plus(cards: tuple[Card, ...], back: tuple[Card, ...], whole: tuple[Card, ...]) -> tuple[Card, ...]:
    """Which GPUs they were taken of is not known: of the fullest that could have given them."""
    if not back:
        return cards
    left = list(cards)
    gave = [at for at in range(len(left)) if (whole[at] - left[at]).holds(back[0])]
    gave.sort(key=lambda at: (left[at].memory_mib, left[at].cores_percent, at))
    for at, card in zip(gave, back, strict=False):
        now = left[at]
        left[at] = Card(
            now.memory_mib + card.memory_mib, now.cores_percent + card.cores_percent, now.slots + card.slots
        )
    return tuple(left)


@dataclass(frozen=True)
class Run:
    """An admitted claim on a node of the pool, of this pool or of another that shares the node."""

    claim: UUID
    tenant: UUID
    user: UUID | int | None
    takes: Room
    admitted_at: datetime
    # The latest end that is kept to; None: none is known.
    ends_at: datetime | None = None
    in_pool: bool = True
    booking: UUID | None = None
    # It was told to give its units back by then.
    reclaim_at: datetime | None = None
    reclaim_for: UUID | None = None
    is_workspace: bool = True
    # Nobody of a lower priority asks it for its units.
    priority: int = 0


@dataclass(frozen=True)
class NodeState:
    """A healthy node of the pool: free now, what would be free had all our own runs there ended, and those runs."""

    name: str
    free: Room
    without_ours: Room
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True)
class Reason:
    code: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting:
    claim: UUID
    tenant: UUID
    need: Room
    priority: int
    place: int
    is_workspace: bool = True
    not_before: datetime | None = None
    # Why it waits, as last decided: kept while it is in back-off.
    reason: Reason = Reason("")
    user: UUID | int | None = None
    # How long it runs at most once it has started; None: it runs until stopped.
    lasts: timedelta | None = None
    returns_first: bool = False


@dataclass(frozen=True)
class Limits:
    """What a tenant may hold over all pools, or does hold; None is no limit."""

    cpu_millicores: int | None = None
    memory_mib: int | None = None
    workspaces: int | None = None


@dataclass(frozen=True)
class PersonUse:
    """What one person holds in a tenant over all pools, and may hold; None is no limit. GPUs are exact."""

    gpus: Fraction = Fraction(0)
    workspaces: int = 0
    most_gpus: int | None = None
    most_workspaces: int | None = None


@dataclass(frozen=True)
class TenantQuota:
    """What a tenant holds of the pool and may hold (None: no limit here), and its limits over all pools.

    `limit_units` is its own and what it may borrow; beyond `nominal_units` it borrows, and may be asked for it back.
    """

    used_units: int
    limit_units: int | None
    used: Limits = Limits(0, 0, 0)
    limits: Limits = Limits()
    nominal_units: int | None = None  # None: no line between own and borrowed here
    weight: int = 1
    # GPU-seconds of this pool in the last days, each day counting half of what it did `HALF_LIFE` later.
    past_use: float = 0.0
    people: Mapping[Any, PersonUse] = field(default_factory=dict)
    # Why nothing new of the tenant starts, whatever is free (its budget is spent); None: nothing is in the way.
    blocked: Reason | None = None
    blocked_people: Mapping[Any, Reason] = field(default_factory=dict)


@dataclass(frozen=True)
class Booked:
    """Places of a pool that a tenant has for itself in a time; only those that are not over."""

    booking: UUID
    tenant: UUID
    starts_at: datetime
    ends_at: datetime
    places: int
    units_each: int


@dataclass(frozen=True)
class PoolState:
    units_per_gpu: int
    nodes: tuple[NodeState, ...]
    waiting: tuple[Waiting, ...]
    tenants: Mapping[UUID, TenantQuota]
    now: datetime
    is_open: bool = True
    bookings: tuple[Booked, ...] = ()
    grace: timedelta = RECLAIM_GRACE
    # Nodes and GPUs of the pool that are out of order, counted by why: told beside a lack of room.
    out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Admitted:
    claim: UUID
    node: str
    booking: UUID | None = None
    # It was let in because it ends before something that begins then, and so must.
    must_end_at: datetime | None = None


@dataclass(frozen=True)
class Waits:
    claim: UUID
    position: int
    reason: Reason
    # GPUs (as units) that those before it ask for together.
    units_ahead: int = 0


@dataclass(frozen=True)
class Reclaim:
    """A borrowed run that is asked for its units, for the sake of whom; or was, for the sake of another."""

    run: UUID
    beneficiary: UUID
    code: str


@dataclass(frozen=True)
class Decisions:
    admitted: tuple[Admitted, ...]
    waits: tuple[Waits, ...]
    # Runs to be asked back now, and those that were asked before and may stay after all.
    reclaims: tuple[Reclaim, ...] = ()
    spared: tuple[UUID, ...] = ()


def as_gpus(units: int, units_per_gpu: int) -> int | float:
    """Units as a number of GPUs for people: 1, 0.25."""
    gpus = Fraction(units, units_per_gpu)
    return gpus.numerator if gpus.denominator == 1 else round(float(gpus), 4)
