"""Records of a day: requests, rows, objects that the cluster showed, and events that sockets received."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]


@dataclass
class Asked:
    """A person's request. `status` is None if no answer came: it may or may not have taken effect."""

    who: str
    verb: str  # launch, start, stop, restart, delete, extend, change, clone, look, hostile …
    sent: datetime
    workspace: str = ""
    body: Json = field(default_factory=dict)
    status: int | None = None
    answered: datetime | None = None
    answer: Any = None
    # `rivals`: of these requests (same name) at most one may be accepted. `key`: these all have one answer.
    rivals: str = ""
    key: str = ""

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, kw_only=True)
class Workspace:
    id: str
    tenant: str
    owner: str
    name: str
    desired: str
    phase: str
    message_code: str
    ending: str = ""
    delete_disk: bool = False
    deleted_at: datetime | None = None
    ready_at: datetime | None = None
    stops_at: datetime | None = None
    last_event: int = 0
    run: str | None = None
    dirty_since: datetime | None = None
    troubles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Event:
    workspace: str
    number: int
    run: str | None
    at: datetime
    step: str
    level: str
    code: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Claim:
    id: str
    pool: str
    tenant: str
    holder: str
    units: int
    state: str
    created_at: datetime
    admitted_at: datetime | None
    released_at: datetime | None
    reason: str  # of the release
    user: str = ""
    units_per_gpu: int = 1
    booking: str | None = None
    reclaim_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Audited:
    at: datetime
    who: str
    action: str
    target: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Quota:
    """Row of a tenant's quota of a pool at the start of a day, with the ids of its limit and its budget."""

    id: str
    tenant: str
    tenant_id: str
    pool: str
    pool_id: str
    nominal_gpus: int
    borrowing_limit_gpus: int
    units_per_gpu: int
    limit_id: str
    budget_id: str


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share that an admin gave a tenant, in force from a moment between `sent` and `answered`.

    If no answer came, it may never be in force.
    """

    tenant: str
    of: str  # a name from the functions below
    most: float
    sent: datetime
    answered: datetime | None


def units_of(pool: str) -> str:
    """Name of the share of own and borrowed units."""
    return f"units of {pool}"


def own_units_of(pool: str) -> str:
    return f"own units of {pool}"


WORKSPACES, WORKSPACES_OF_ONE, GPUS_OF_ONE = "workspaces", "workspaces of one person", "GPUs of one person"
OF_ONE = (WORKSPACES_OF_ONE, GPUS_OF_ONE)
MINUTES = "minutes of a run"


@dataclass(frozen=True, kw_only=True)
class Booking:
    id: str
    pool: str
    tenant: str
    starts_at: datetime
    ends_at: datetime
    places: int
    units_each: int
    created_at: datetime
    cancelled_at: datetime | None


@dataclass
class PodLife:
    """A pod as the cluster showed it."""

    uid: str
    workspace: str
    run: str
    units: int
    created: datetime  # whole seconds, as the cluster writes them
    node: str = ""
    finished: datetime | None = None  # when its container ended, if its node said so
    seen_first: datetime | None = None  # on the observer's clock
    seen_placed: datetime | None = None  # on its node
    seen_last: datetime | None = None  # ended or gone


@dataclass(frozen=True, kw_only=True)
class Lived:
    """A PVC of a workspace, from its first sight to its last."""

    kind: str
    workspace: str
    part: str  # its name without the workspace's
    uid: str
    began: int  # a counter of the observer that all kinds share, in place of a time
    ended: int | None


@dataclass
class Heard:
    """Events of a workspace that one browser received, over all of its connections."""

    who: str
    workspace: str
    events: list[Json] = field(default_factory=list)
    connections: int = 0
    refused: int | None = None  # the code with which it was closed for good
    stayed: bool = True


@dataclass(frozen=True, kw_only=True)
class Records:
    """Complete records at a moment of quiet."""

    asked: Sequence[Asked]
    workspaces: Mapping[str, Workspace]
    events: Mapping[str, Sequence[Event]]
    claims: Sequence[Claim]
    audit: Sequence[Audited]
    pods: Sequence[PodLife]
    lived: Sequence[Lived]
    heard: Sequence[Heard]
    shares: Sequence[Share]
    bookings: Sequence[Booking]
    pool_units: Mapping[str, int]
    node_units: Mapping[str, int]
    left: Sequence[tuple[str, str, str]]  # what the cluster has now: (kind, workspace, name)
    ssh_keys: Mapping[str, set[str]]  # of each person
    let_in: Mapping[str, set[str]]  # keys in each workspace's Secret
    secrets_deleted: Mapping[str, datetime]  # last deletion by hand, per workspace
    database: Sequence[str]  # errors in the database's log, with their details
