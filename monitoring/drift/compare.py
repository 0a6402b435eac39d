"""Differences between a cluster's objects and the rows of Berth that nothing repairs by itself. Pure: rows and objects
in, findings out, one object at a time.

An object in transition is no finding, as its reconcile is at work; neither is an object that is being deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from clusters.labels import JOB, TENANT, WORKSPACE
from clusters.site import registries
from jobs import naming
from jobs.cluster.manifests import START as JOB_START
from monitoring.models import What
from workspaces.cluster.manifests import START
from workspaces.naming import OBJECT_NAME

from .ownership import Difference, differences

Object = Mapping[str, Any]

# Kinds in the order of reading: a namespace before its content, a StatefulSet or Job before what it owns.
FENCES = {
    "ServiceAccount": "workspace",
    "LimitRange": "berth",
    "NetworkPolicy": "berth",
    "ResourceQuota": "berth",
}
NOT_EVERYWHERE = "ResourceQuota"  # a backstop, made at the first launch after a tenant was given GPUs
WAYS_IN = (
    "Service",
    "Secret",
)  # made at a workspace's start, kept until it is deleted, but see Row.has_address
OF_A_RUN = (*WAYS_IN, "Pod")
# Earlier versions of Berth made these for each workspace, and its pod's name with an ending.
OF_EARLIER = ("StatefulSet", "ConfigMap")
EARLIER_POD = "-0"
KINDS = ("Namespace", *FENCES, "PersistentVolumeClaim", *OF_EARLIER, "Job", *OF_A_RUN)


class State(Enum):
    RUNS = "runs"
    RESTS = "rests"
    MOVES = "moves"  # started, stopped, deleted, or marked for a reconcile: no finding, whatever is there


@dataclass(frozen=True, slots=True)
class Row:
    """Workspace's row, as far as it determines the objects in its cluster."""

    id: UUID
    namespace: str
    state: State
    has_address: bool = True  # False: it is stopped, and its cluster keeps no addresses

    @property
    def name(self) -> str:
        return f"ws-{self.id}"

    def wanted(self) -> Iterator[Key]:
        """Yield the keys of the objects that must exist."""
        if self.state == State.MOVES:
            return
        if self.state == State.RUNS:
            for kind in OF_A_RUN:
                yield Key(kind, self.namespace, self.name)

    def may_have(self, key: Key) -> bool:
        kinds = WAYS_IN if self.has_address else ("Secret",)
        ways_in = [Key(kind, self.namespace, self.name) for kind in kinds]
        return key in ways_in or today(key) in self.wanted()

    def still_has(self, thing: Thing) -> bool:
        """Return True for a part of a run that an earlier version of Berth began: nothing is compared, as all of it
        goes when the run ends."""
        if self.state != State.RUNS or thing.key[1:] != (self.namespace, self.name):
            return False
        return thing.key.kind in OF_EARLIER and (thing.key.kind != "StatefulSet" or thing.has_pod)


class Key(NamedTuple):
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Thing:
    """Facts about an object that a look keeps in memory."""

    key: Key
    uid: str
    owner: str = ""  # the uid of its controller
    has_pod: bool = False  # a StatefulSet's
    workspace: str = ""
    job: str = ""
    tenant: str = ""
    goes: bool = False
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Discrepancy:
    what: What
    key: Key
    uid: str = ""  # of the existing object
    workspace: UUID | None = None
    job: UUID | None = None  # or the run of one
    tenant: str = ""  # slug
    differences: tuple[Difference, ...] = ()


def thing_of(body: Object) -> Thing:
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    owners = metadata.get("ownerReferences") or [{}]
    return Thing(
        Key(body["kind"], metadata.get("namespace", ""), metadata["name"]),
        uid=metadata["uid"],
        owner=owners[0].get("uid", ""),
        has_pod=body["kind"] == "StatefulSet" and bool((body.get("status") or {}).get("replicas")),
        workspace=labels.get(WORKSPACE, ""),
        job=labels.get(JOB, ""),
        tenant=labels.get(TENANT, ""),
        goes=bool(metadata.get("deletionTimestamp")),
        differences=tuple(differences(body)),
    )


def drift(
    rows: Mapping[UUID, Row],
    namespaces: Mapping[str, str],
    things: Iterable[Thing],
    others: Set[str] = frozenset(),
    jobs: Mapping[UUID, str] = {},
) -> Iterator[Discrepancy]:
    """Yield the differences. `namespaces`: slugs by namespace. `others`: PVCs that are no workspace's, each as
    namespace/name, or by its name alone where each tenant may have one. `jobs`: as `of_jobs.namespaces_of` has them."""
    missing = {key: row for row in rows.values() for key in row.wanted()}
    fences: set[Key] = set()
    unwanted: set[str] = set()
    for thing in things:
        missing.pop(today(thing.key), None)
        fences.discard(thing.key)
        if thing.goes:
            continue
        if thing.key.kind == "Namespace" and thing.key.name in namespaces:
            fences |= fences_of(thing.key.name)
        found = judge(thing, rows, namespaces, others, jobs)
        if found is None:
            continue
        if found.what == What.UNWANTED:
            unwanted.add(thing.uid)
            if thing.owner in unwanted:
                continue  # it is deleted with its owner, which is reported
        yield found
    for key, row in missing.items():
        yield Discrepancy(What.MISSING, key, workspace=row.id, tenant=namespaces.get(key.namespace, ""))
    for key in fences:
        yield Discrepancy(What.MISSING, key, tenant=namespaces[key.namespace])


def today(key: Key) -> Key:
    """Return the key that a run of this version of Berth has for a pod that an earlier version named."""
    return key._replace(name=key.name.removesuffix(EARLIER_POD)) if key.kind == "Pod" else key


def fences_of(namespace: str) -> set[Key]:
    return {Key(kind, namespace, name) for kind, name in FENCES.items() if kind != NOT_EVERYWHERE}


def judge(
    thing: Thing,
    rows: Mapping[UUID, Row],
    namespaces: Mapping[str, str],
    others: Set[str],
    jobs: Mapping[UUID, str] = {},
) -> Discrepancy | None:
    """Return the finding about one object, or None. A name that a row wants is the row's, whatever the labels say: a
    label that anybody can write must not turn a tenant's namespace into one without an owner."""
    key, labelled = thing.key, uuid_of(thing.workspace)
    known = named_in(key.name) or labelled
    row = rows.get(known) if known else None
    tenant = namespaces.get(key.name if key.kind == "Namespace" else key.namespace, thing.tenant)
    if is_of_a_tenant(key, namespaces, others):
        changed = thing.differences
        return (
            Discrepancy(What.CHANGED, key, thing.uid, tenant=tenant, differences=changed) if changed else None
        )
    if known is None and (job := naming.named_in(key.name) or uuid_of(thing.job)):
        is_known = jobs.get(job) == key.namespace and naming.named_in(key.name) is not None
        return None if is_known else Discrepancy(What.UNWANTED, key, thing.uid, job=job, tenant=tenant)
    if row is not None and (row.state == State.MOVES or row.still_has(thing)):
        return None
    if row is not None and row.state == State.RESTS and key.kind in WAYS_IN and row.may_have(key):
        return None  # nobody uses them now: they are compared while it runs
    if row is not None and row.may_have(key):
        changed = thing.differences if labelled == row.id else with_label(thing.differences)
        return Discrepancy(What.CHANGED, key, thing.uid, known, None, tenant, changed) if changed else None
    return Discrepancy(What.UNWANTED, key, thing.uid, known, tenant=tenant)


def named_in(name: str) -> UUID | None:
    found = OBJECT_NAME.match(name)
    return UUID(found[1]) if found else None


def with_label(found: tuple[Difference, ...]) -> tuple[Difference, ...]:
    """Add the removal of the workspace label, unless another value was set."""
    label = ("f:metadata", "f:labels", f"f:{WORKSPACE}")
    return found if any(one.fields == label for one in found) else (*found, Difference(label))


def is_of_a_tenant(key: Key, namespaces: Mapping[str, str], others: Set[str]) -> bool:
    if key.kind == "Namespace":
        return key.name in namespaces
    if key.kind == "PersistentVolumeClaim" and {key.name, f"{key.namespace}/{key.name}"} & others:
        return key.namespace in namespaces
    if key.kind == "Secret" and key.name == registries.NAME:
        return key.namespace in namespaces  # made again and deleted by the watcher
    if key.kind == "ConfigMap" and key.name.startswith((START, JOB_START)):
        return key.namespace in namespaces  # also one that no pod uses: the next start may
    return FENCES.get(key.kind) == key.name and key.namespace in namespaces


def uuid_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
