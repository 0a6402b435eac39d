"""Where the cluster and the rows of Berth do not agree, and nobody is about to mend it. Pure: rows and objects in,
findings out, one object at a time.

What is in transition is no finding (its reconcile is at work), and neither is what is being deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from clusters.labels import TENANT, WORKSPACE
from monitoring.models import What
from workspaces.receivers import OBJECT_NAME

from .ownership import Difference, differences

Object = Mapping[str, Any]

# In this order they are looked at: what owns others before what it owns, a namespace before what is in it.
FENCES = {
    "ServiceAccount": "workspace",
    "LimitRange": "berth",
    "NetworkPolicy": "berth",
    "ResourceQuota": "berth",
}
NOT_EVERYWHERE = "ResourceQuota"  # a backstop, made at the first launch after a tenant was given GPUs
OF_A_RUN = ("StatefulSet", "Service", "Secret", "ConfigMap", "Pod")
KINDS = ("Namespace", *FENCES, "PersistentVolumeClaim", *OF_A_RUN)


class State(Enum):
    RUNS = "runs"
    RESTS = "rests"
    MOVES = "moves"  # started, stopped, deleted, or marked to be looked at: whatever is there, wait


@dataclass(frozen=True, slots=True)
class Row:
    """What a workspace's row wants of its cluster."""

    id: UUID
    namespace: str
    state: State
    volumes: frozenset[str] = frozenset()  # names of the claims that hold its data

    @property
    def name(self) -> str:
        return f"ws-{self.id}"

    def wanted(self) -> Iterator[Key]:
        """What must be there."""
        if self.state == State.MOVES:
            return
        for claim in self.volumes:
            yield Key("PersistentVolumeClaim", self.namespace, claim)
        if self.state == State.RUNS:
            for kind in OF_A_RUN:
                yield Key(kind, self.namespace, f"{self.name}-0" if kind == "Pod" else self.name)

    def may_have(self, key: Key) -> bool:
        """Claims that are not bound yet are no data, and wanted all the same."""
        homes = {f"{self.name}-home", f"{self.name}-disk"}
        is_claim = (
            key.kind == "PersistentVolumeClaim" and key.name in homes and key.namespace == self.namespace
        )
        return is_claim or key in set(self.wanted())


class Key(NamedTuple):
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Thing:
    """What is kept in mind of an object."""

    key: Key
    uid: str
    owner: str = ""  # the uid of its controller
    workspace: str = ""
    tenant: str = ""
    goes: bool = False
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    what: What
    key: Key
    uid: str = ""  # of what is there
    workspace: UUID | None = None
    tenant: str = ""  # slug
    differences: tuple[Difference, ...] = field(default=())


def thing_of(body: Object) -> Thing:
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    owners = metadata.get("ownerReferences") or [{}]
    return Thing(
        Key(body["kind"], metadata.get("namespace", ""), metadata["name"]),
        uid=metadata["uid"],
        owner=owners[0].get("uid", ""),
        workspace=labels.get(WORKSPACE, ""),
        tenant=labels.get(TENANT, ""),
        goes=bool(metadata.get("deletionTimestamp")),
        differences=tuple(differences(body)),
    )


def drift(
    rows: Mapping[UUID, Row],
    namespaces: Mapping[str, str],
    things: Iterable[Thing],
    drivers: Set[str] = frozenset(),
) -> Iterator[Found]:
    """`namespaces`: of all tenants, with their slugs. `drivers`: names of claims that pools on old nodes want."""
    missing = {key: row for row in rows.values() for key in row.wanted()}
    fences: set[Key] = set()
    unwanted: set[str] = set()
    for thing in things:
        missing.pop(thing.key, None)
        fences.discard(thing.key)
        if thing.goes:
            continue
        if thing.key.kind == "Namespace" and thing.key.name in namespaces:
            fences |= fences_of(thing.key.name)
        found = judge(thing, rows, namespaces, drivers)
        if found is None:
            continue
        if found.what == What.UNWANTED:
            unwanted.add(thing.uid)
            if thing.owner in unwanted:
                continue  # it goes with its owner, which is told
        yield found
    for key, row in missing.items():
        yield Found(What.MISSING, key, workspace=row.id, tenant=namespaces.get(key.namespace, ""))
    for key in fences:
        yield Found(What.MISSING, key, tenant=namespaces[key.namespace])


def fences_of(namespace: str) -> set[Key]:
    return {Key(kind, namespace, name) for kind, name in FENCES.items() if kind != NOT_EVERYWHERE}


def judge(
    thing: Thing, rows: Mapping[UUID, Row], namespaces: Mapping[str, str], drivers: Set[str]
) -> Found | None:
    """One object by itself. Where its name is what a row wants it is that row's, whatever its label says by now: a
    label that anybody may write must not make a tenant's namespace one of nobody."""
    key, labelled = thing.key, uuid_of(thing.workspace)
    known = named_in(key.name) or labelled
    row = rows.get(known) if known else None
    tenant = namespaces.get(key.name if key.kind == "Namespace" else key.namespace, thing.tenant)
    if is_of_a_tenant(key, namespaces, drivers):
        changed = thing.differences
        return Found(What.CHANGED, key, thing.uid, None, tenant, changed) if changed else None
    if row is not None and row.state == State.MOVES:
        return None
    if row is not None and row.may_have(key):
        changed = thing.differences if labelled == row.id else with_label(thing.differences)
        return Found(What.CHANGED, key, thing.uid, known, tenant, changed) if changed else None
    return Found(What.UNWANTED, key, thing.uid, known, tenant)


def named_in(name: str) -> UUID | None:
    found = OBJECT_NAME.match(name)
    return UUID(found[1]) if found else None


def with_label(found: tuple[Difference, ...]) -> tuple[Difference, ...]:
    """The label that says whose it is was taken away, if nobody set another."""
    label = ("f:metadata", "f:labels", f"f:{WORKSPACE}")
    return found if any(one.fields == label for one in found) else (*found, Difference(label))


def is_of_a_tenant(key: Key, namespaces: Mapping[str, str], drivers: Set[str]) -> bool:
    if key.kind == "Namespace":
        return key.name in namespaces
    if key.kind == "PersistentVolumeClaim" and key.name in drivers:
        return key.namespace in namespaces
    return FENCES.get(key.kind) == key.name and key.namespace in namespaces


def uuid_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
