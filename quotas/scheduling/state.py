"""Snapshot of a pool that the queue is decided on, and the decisions. Plain values: no database, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID

BACK_OFF_MOST = timedelta(minutes=10)
# Time from the preemption notice of a borrowed run to its stop.
RECLAIM_GRACE = timedelta(minutes=10)


@dataclass(frozen=True)
class Card:
    """Memory, cores and slots that a GPU has or that a run asks of one, for GPUs cut by memory and cores (HAMi)."""

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
    """Amounts that a node has or a run takes. With cards, the cards decide what fits; units are only counted."""

    units: int = 0
    cpu_millicores: int = 0
    memory_mib: int = 0
    pods: int = 0
    cards: tuple[Card, ...] = ()
    # Extended resources beside GPUs, by name; a node's room has all of its pool's, with 0 if it has none.
    extra: tuple[tuple[str, int], ...] = ()
    # Of a node's room: the node's name.
    node: str = ""
    # Of a need: the nodes that its volumes can be mounted on; None: any.
    only: frozenset[str] | None = None

    def holds(self, need: Room) -> bool:
        return (
            self.may_be_for(need)
            and (self._holds_cards(need.cards) if need.cards else self.units >= need.units)
            and self.cpu_millicores >= need.cpu_millicores
            and self.memory_mib >= need.memory_mib
            and self.pods >= need.pods
            and (not need.extra or all(have >= asked for have, asked in self.of_extra(need)))
        )

    def count(self, need: Room, most: int) -> int:
        """Return how many such needs fit here beside each other, up to `most`."""
        if not self.holds(need):
            return 0
        if most == 1:
            return 1
        if need.cards:
            return self._count_by_card(need, most)
        amounts = (
            (self.units, need.units),
            (self.cpu_millicores, need.cpu_millicores),
            (self.memory_mib, need.memory_mib),
            (self.pods, need.pods),
            *self.of_extra(need),
        )
        return min(most, *(have // asked for have, asked in amounts if asked))

    def _count_by_card(self, need: Room, most: int) -> int:
        """Take one after the other: what is left on each card decides."""
        left, found = self, 0
        while found < most and left.holds(need):
            left, found = left - need, found + 1
        return found

    def of_extra(self, need: Room) -> Iterator[tuple[int, int]]:
        """Yield what is here of each extended resource that the need asks for, and how much it asks for."""
        has = dict(self.extra)
        return ((has.get(name, 0), asked) for name, asked in need.extra)

    def may_be_for(self, need: Room) -> bool:
        """Return True if the need's volumes can be mounted on this node."""
        return need.only is None or self.node in need.only

    def _holds_cards(self, asked: tuple[Card, ...]) -> bool:
        """Return True if enough GPUs fit. A run asks the same of each card, and no two are the same GPU."""
        return sum(card.holds(asked[0]) for card in self.cards) >= len(asked)

    def __sub__(self, other: Room) -> Room:
        return Room(
            self.units - other.units,
            self.cpu_millicores - other.cpu_millicores,
            self.memory_mib - other.memory_mib,
            self.pods - other.pods,
            _cards_less(self.cards, other.cards),
            _extra(self, other, -1) if other.extra else self.extra,
            self.node,
        )

    def with_back(self, back: Room, whole: Room) -> Room:
        """Return the room after a run has given back `back`. No GPU gets more than it has in `whole`."""
        return Room(
            self.units + back.units,
            self.cpu_millicores + back.cpu_millicores,
            self.memory_mib + back.memory_mib,
            self.pods + back.pods,
            _cards_plus(self.cards, back.cards, whole.cards),
            _extra(self, back, 1) if back.extra else self.extra,
            self.node,
        )


def _extra(room: Room, other: Room, sign: int) -> tuple[tuple[str, int], ...]:
    """Return the extended resources of a room with those of another added, or taken off."""
    change = dict(other.extra)
    return tuple((name, amount + sign * change.get(name, 0)) for name, amount in room.extra)


def _cards_less(cards: tuple[Card, ...], asked: tuple[Card, ...]) -> tuple[Card, ...]:
    """Take from the fullest cards that fit, so that whole GPUs stay free; if too few fit, from the emptiest."""
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
    """Give back to the fullest GPUs that could have given the cards: no record says which did."""
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
    """A member of an admitted claim on a node of the pool; it belongs to this pool or to another that shares the node.

    Most claims have one. A claim of several has as many runs with its id, on one or several nodes, which start and end
    together.
    """

    claim: UUID
    tenant: UUID
    user: UUID | int | None
    takes: Room
    admitted_at: datetime
    # Latest end, which is enforced; None: unknown.
    ends_at: datetime | None = None
    # End that its holder expects: for forecasts alone, never for what is admitted.
    expected_end: datetime | None = None
    in_pool: bool = True
    booking: UUID | None = None
    # Time by which a preempted run must give its units back.
    reclaim_at: datetime | None = None
    reclaim_for: UUID | None = None
    is_workspace: bool = True
    # No claim of a lower priority preempts it.
    priority: int = 0
    # Number of all members of its claim, also on nodes that are not in the snapshot.
    members: int = 1

    @property
    def all_units(self) -> int:
        return self.takes.units * self.members


@dataclass(frozen=True)
class NodeState:
    """A healthy node of the pool: free room, room without Berth's own runs, and those runs."""

    name: str
    free: Room
    without_ours: Room
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True)
class Lease:
    """Use of a volume by a holder's run. A writer excludes all others; readers share, unless only one can mount it."""

    volume: UUID
    name: str
    holder: UUID
    holder_name: str
    writes: bool = False
    is_exclusive: bool = False
    # Nobody can mount the volume yet.
    is_being_made: bool = False
    # Nodes that have the volume attached though no run uses it: each may still have it mounted.
    nodes: tuple[str, ...] = ()

    def excludes(self, other: Lease) -> bool:
        """Return True if the two runs must not be at the same time."""
        if self.volume != other.volume or self.holder == other.holder:
            return False
        return self.writes or other.writes or self.is_exclusive or other.is_exclusive


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
    # Reason of the last decision; kept while the claim is in back-off.
    reason: Reason = Reason("")
    user: UUID | int | None = None
    # Longest time that it runs; None: until stopped.
    lasts: timedelta | None = None
    returns_first: bool = False
    leases: tuple[Lease, ...] = ()
    # It starts with all of these at once, each with this need, or waits.
    members: int = 1

    @property
    def units(self) -> int:
        """Units of all members together."""
        return self.need.units * self.members


@dataclass(frozen=True)
class Limits:
    """Amounts that a tenant may hold, or holds, over all pools. None: no limit."""

    cpu_millicores: int | None = None
    memory_mib: int | None = None
    workspaces: int | None = None


@dataclass(frozen=True)
class PersonUse:
    """Use and limits of one person in a tenant, over all pools. None: no limit. GPUs are exact."""

    gpus: Fraction = Fraction(0)
    workspaces: int = 0
    most_gpus: int | None = None
    most_workspaces: int | None = None


@dataclass(frozen=True)
class TenantQuota:
    """Use and limit of a tenant in the pool (None: no limit here), and its limits over all pools.

    `limit_units` is its own share plus what it may borrow. Units above `nominal_units` are borrowed: these may be
    preempted.
    """

    used_units: int
    limit_units: int | None
    used: Limits = Limits(0, 0, 0)
    limits: Limits = Limits()
    nominal_units: int | None = None  # None: own and borrowed are not separated here
    weight: int = 1
    # GPU-seconds used in this pool; a day's weight halves every `HALF_LIFE_DAYS` (`quotas/allowed/usage.py`).
    past_use: float = 0.0
    people: Mapping[Any, PersonUse] = field(default_factory=dict)
    # Reason that stops every new start of the tenant (its budget is spent); None: not blocked.
    blocked: Reason | None = None
    blocked_people: Mapping[Any, Reason] = field(default_factory=dict)


@dataclass(frozen=True)
class Booked:
    """Places of a pool that a tenant has booked for a time. Bookings that are over are left out."""

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
    # Number of the pool's nodes and GPUs out of order, by cause; reported beside a lack of room.
    out: Mapping[str, int] = field(default_factory=dict)
    # Nodes of the pool that take nothing new now.
    resting: frozenset[str] = frozenset()
    # Leases that runs hold on volumes which a claim here asks for.
    leased: tuple[Lease, ...] = ()


@dataclass(frozen=True)
class Admitted:
    claim: UUID
    # Node of each member; a node may have several.
    nodes: tuple[str, ...]
    booking: UUID | None = None
    # Latest end: from then on its room is kept for a booking or a waiting claim.
    must_end_at: datetime | None = None

    @property
    def node(self) -> str:
        return self.nodes[0]


@dataclass(frozen=True)
class Waits:
    claim: UUID
    position: int
    reason: Reason
    # Units that the claims ahead of it request together.
    units_ahead: int = 0


@dataclass(frozen=True)
class Reclaim:
    """Preemption of a borrowed run for a beneficiary; also of a run preempted before for another one."""

    run: UUID
    beneficiary: UUID
    code: str


@dataclass(frozen=True)
class Decisions:
    admitted: tuple[Admitted, ...]
    waits: tuple[Waits, ...]
    # Preemptions to make now, and runs whose earlier preemption is cancelled.
    reclaims: tuple[Reclaim, ...] = ()
    cancelled: tuple[UUID, ...] = ()


def as_gpus(units: int, units_per_gpu: int) -> int | float:
    """Return units as a number of GPUs for people: 1, 0.25."""
    gpus = Fraction(units, units_per_gpu)
    return gpus.numerator if gpus.denominator == 1 else round(float(gpus), 4)
