"""What a day left behind: who asked for what, what the rows say, what the cluster showed, what sockets heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]


@dataclass
class Asked:
    """One request of a person. `status` is None when no answer came: then it may be done or not."""

    who: str
    verb: str  # launch, start, stop, restart, delete, extend, change, clone, look, hostile …
    sent: datetime
    workspace: str = ""
    body: Json = field(default_factory=dict)
    status: int | None = None
    answered: datetime | None = None
    answer: Any = None
    # Requests of which at most one may be accepted (a name twice), or all have one answer (a key repeated).
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
    """A tenant's quota of a pool as a row, where a day begins; with the rows of its limits and its budget."""

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
    """What an admin let a tenant have: from some moment after `sent` on, at the latest from `answered`.

    Where no answer came, perhaps never.
    """

    tenant: str
    of: str  # as the functions below say it
    most: float
    sent: datetime
    answered: datetime | None


def units_of(pool: str) -> str:
    """Its own and borrowed."""
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
    """One pod, by the cluster's own words."""

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
    """A StatefulSet or a volume claim of a workspace, from its first sight to its last."""

    kind: str
    workspace: str
    part: str  # of volume claims: which of the workspace's
    uid: str
    began: int  # numbers of the observer's looks: a moment that all kinds share
    ended: int | None


@dataclass
class Heard:
    """What one browser's socket said about one workspace, over all of its connections."""

    who: str
    workspace: str
    events: list[Json] = field(default_factory=list)
    connections: int = 0
    refused: int | None = None  # the code with which it was closed for good
    stayed: bool = True


@dataclass(frozen=True, kw_only=True)
class Records:
    """Everything, at one moment of quiet."""

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
    let_in: Mapping[str, set[str]]  # whose keys each workspace's Secret holds
    secrets_deleted: Mapping[str, datetime]  # by hand, the last time
    database: Sequence[str]  # what the database's log calls an error, with its details
