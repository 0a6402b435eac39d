"""Inventory of a cluster as rows: its nodes, and what every pod takes of them, ours or not.

The upper half is pure: from raw JSON to the values of a row. The lower half writes rows, and only when they differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from clusters import labels
from clusters.models import Cluster, Node, PodUsage
from clusters.nodes import hami
from clusters.quantities import parse
from clusters.transport import Json
from clusters.watch.skipping import Unread, refused, skip

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Labels that hold the time: they would make a node differ at every look.
CLOCKS = frozenset({"nvidia.com/gfd.timestamp"})
ENDED = frozenset({"Succeeded", "Failed"})
# Time spans in messages of conditions ("last seen active 3m2.5s ago") change all the time, too.
SPAN = re.compile(r"\b\d[\d.hmsnµu]*(?:h|m|s)\b")


@dataclass(frozen=True)
class NodeValues:
    name: str
    labels: Mapping[str, str]
    taints: list[dict[str, str]]
    allocatable: Mapping[str, int]
    capacity: Mapping[str, int]
    devices: list[dict[str, Any]]
    ready: bool
    unschedulable: bool
    system: Mapping[str, str]
    conditions: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class UsageValues:
    uid: str
    namespace: str
    name: str
    node: str
    run: UUID | None
    requests: Mapping[str, int]
    devices: list[dict[str, Any]]


def node_values(body: Json) -> NodeValues:
    metadata, spec, status = body["metadata"], body.get("spec", {}), body.get("status", {})
    taints = [
        {key: taint.get(key, "") for key in ("key", "value", "effect")} for taint in spec.get("taints") or []
    ]
    conditions = conditions_of(status)
    return NodeValues(
        name=checked_name(metadata["name"]),
        labels={key: value for key, value in (metadata.get("labels") or {}).items() if key not in CLOCKS},
        taints=sorted(taints, key=lambda taint: (taint["key"], taint["effect"])),
        allocatable=amounts(status.get("allocatable")),
        # Resources of device plugins: their names have a domain.
        capacity={name: n for name, n in amounts(status.get("capacity")).items() if "/" in name},
        devices=hami.cards_of_node(metadata.get("annotations") or {}),
        ready=conditions.get("Ready", {}).get("status") == "True",
        unschedulable=bool(spec.get("unschedulable")),
        system=texts(status.get("nodeInfo") or {}),
        conditions=conditions,
    )


def conditions_of(status: Json) -> dict[str, dict[str, str]]:
    return {
        condition["type"]: {
            "status": condition["status"],
            "reason": without_nul(condition.get("reason", "")),
            "message": without_nul(SPAN.sub("…", condition.get("message", ""))),
        }
        for condition in status.get("conditions") or []
    }


def texts(told: Json) -> dict[str, str]:
    """Return the values that are text: newer kubelets report their swap by an object."""
    return {name: without_nul(value) for name, value in told.items() if isinstance(value, str)}


def checked_name(name: Any) -> str:
    """Return the name. Raise TypeError if it is no text: no row is found again by anything else."""
    if not isinstance(name, str):
        raise TypeError("a name that is no text")
    return name


def without_nul(text: str) -> str:
    """Return the text without NUL, which PostgreSQL refuses: one odd node must not block reports of the others."""
    return text.replace("\0", "")


def usage_values(body: Json, installation: str) -> UsageValues | None:
    """Return what the pod takes; None if it takes nothing because it ended or has no node yet."""
    metadata, spec = body["metadata"], body["spec"]
    node = spec.get("nodeName")
    if not node or body.get("status", {}).get("phase") in ENDED:
        return None
    return UsageValues(
        uid=checked_name(metadata["uid"]),
        namespace=checked_name(metadata["namespace"]),
        name=checked_name(metadata["name"]),
        node=checked_name(node),
        run=_run_of(metadata.get("labels") or {}, installation),
        requests=pod_requests(spec),
        devices=hami.cards_of_pod(metadata.get("annotations") or {}),
    )


def pod_requests(spec: Json) -> dict[str, int]:
    """Return what the scheduler counts: the larger of running and starting containers, the overhead, one pod."""
    running: Counter[str] = Counter()
    starting: Counter[str] = Counter()
    for container in spec.get("initContainers") or []:
        wanted = amounts(container.get("resources", {}).get("requests"))
        if container.get("restartPolicy") == "Always":  # a sidecar: it keeps running
            running.update(wanted)
            starting |= running
        else:
            starting |= running + Counter(wanted)
    for container in spec.get("containers") or []:
        running.update(amounts(container.get("resources", {}).get("requests")))
    total = running | starting
    # Requests of the pod as a whole (Kubernetes 1.34) replace those of its containers.
    whole = amounts(spec.get("resources", {}).get("requests"))
    total.update({name: amount - total[name] for name, amount in whole.items()})
    total.update(amounts(spec.get("overhead")))
    total["pods"] = 1
    return {name: amount for name, amount in sorted(total.items()) if amount}


def amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    return {name: parse(name, quantity) for name, quantity in sorted((quantities or {}).items())}


def _run_of(pod_labels: Mapping[str, str], installation: str) -> UUID | None:
    if pod_labels.get(labels.INSTANCE) != installation:
        return None
    try:
        return UUID(pod_labels.get(labels.RUN, ""))
    except ValueError:
        return None


# --- rows

Values = TypeVar("Values", bound="DataclassInstance")


class Table(Generic[Values]):
    """Rows of one cluster, by key, as last written: only what differs is written."""

    kind: str
    model: type[Any]  # Node, PodUsage or PartPod
    key: str  # field that identifies a row within its cluster
    shape: type[Values]

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, Values] = {}
        self._names = [field.name for field in fields(self.shape)]

    def _replace(self, listed: Iterable[Values | Unread | None]) -> dict[str, Values]:
        """Make the rows equal to the list; leave rows of unreadable objects as they are. Return the rows before."""
        listed = list(listed)
        wanted = {self._key(values): values for values in listed if isinstance(values, self.shape)}
        rows = self._stored().values_list(*self._names)
        before = {self._key(values): values for values in (self.shape(*row) for row in rows.iterator())}
        kept = {getattr(one, self.key) for one in listed if isinstance(one, Unread)} - wanted.keys()
        changed = [values for key, values in sorted(wanted.items()) if before.get(key) != values]
        for values, why in refused(self._write, changed):
            skip(self._cluster.slug, self.kind, asdict(values), why)
            kept.add(self._key(values))
        written = {key: values for key, values in wanted.items() if key not in kept}
        self._rows = written | {key: before[key] for key in kept & before.keys()}
        self._delete(*(before.keys() - self._rows.keys()))
        return before

    def _put(self, values: Values) -> bool:
        """Write the row. Return False if it is the same already."""
        key = self._key(values)
        if self._rows.get(key) == values:
            return False
        self._write([values])
        self._rows[key] = values
        return True

    def _key(self, values: Values) -> str:
        return str(getattr(values, self.key))

    def _stored(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model.objects.filter(cluster=self._cluster)
        return rows

    def _delete(self, *keys: str) -> bool:
        return bool(self._stored().filter(**{f"{self.key}__in": keys}).delete()[0])

    def _write(self, changed: list[Values]) -> None:
        self.model.objects.bulk_create(
            [self.model(cluster=self._cluster, **asdict(values)) for values in changed],
            batch_size=1000,
            update_conflicts=True,
            unique_fields=["cluster", self.key],
            update_fields=[name for name in self._names if name != self.key],
        )


class NodeTable(Table[NodeValues]):
    """Node rows of one cluster. Each method returns the names of those that changed."""

    kind, model, key, shape = "Node", Node, "name", NodeValues

    def replace(self, listed: Iterable[NodeValues | Unread]) -> set[str]:
        before = self._replace(listed)
        names = before.keys() | self._rows.keys()
        return {name for name in names if before.get(name) != self._rows.get(name)}

    def put(self, body: Json) -> set[str]:
        values = node_values(body)
        return {values.name} if self._put(values) else set()

    def remove(self, body: Json) -> set[str]:
        name = body["metadata"]["name"]
        self._rows.pop(name, None)
        return {name} if self._delete(name) else set()


class UsageTable(Table[UsageValues]):
    """PodUsage rows of one cluster. Each method that writes returns True if something changed."""

    kind, model, key, shape = "Pod", PodUsage, "uid", UsageValues

    def __init__(self, cluster: Cluster, installation: str) -> None:
        super().__init__(cluster)
        self._installation = installation

    def values(self, body: Json) -> UsageValues | None:
        return usage_values(body, self._installation)

    def replace(self, listed: Iterable[UsageValues | Unread | None]) -> bool:
        return self._replace(listed) != self._rows

    def put(self, body: Json) -> bool:
        values = self.values(body)
        return self.remove(body) if values is None else self._put(values)

    def remove(self, body: Json) -> bool:
        """Delete the pod's row. No query without one: most deleted pods lost theirs when they ended."""
        uid = body["metadata"]["uid"]
        if self._rows.pop(uid, None) is None:
            return False
        self._delete(uid)
        return True
