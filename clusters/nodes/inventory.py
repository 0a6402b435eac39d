"""Inventory of a cluster as rows: its nodes, and what every pod takes of them, ours or not.

The upper half is pure: from raw JSON to the values of a row. The lower half writes rows, and only when they differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar
from uuid import UUID

from clusters import labels
from clusters.models import Cluster, Node, PodUsage
from clusters.nodes import hami
from clusters.quantities import parse
from clusters.transport import Json
from clusters.watch.skipping import Unread, refused, skip

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
        capacity=extended(amounts(status.get("capacity"))),
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


def extended(resources: Mapping[str, int]) -> dict[str, int]:
    """Return the resources of device plugins: their names have a domain."""
    return {name: amount for name, amount in resources.items() if "/" in name}


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
    total.update({name: amount - total[name] for name, amount in _whole_pod(spec).items()})
    total.update(amounts(spec.get("overhead")))
    total["pods"] = 1
    return {name: amount for name, amount in sorted(total.items()) if amount}


def _whole_pod(spec: Json) -> dict[str, int]:
    """Return requests of the pod as a whole (Kubernetes 1.34), which replace those of its containers."""
    return amounts(spec.get("resources", {}).get("requests"))


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

NODE_FIELDS = [field.name for field in fields(NodeValues)]
USAGE_FIELDS = [field.name for field in fields(UsageValues)]


Values = TypeVar("Values", NodeValues, UsageValues)


def merge_keeping(
    left: Set[str], wanted: Mapping[str, Values], there: Mapping[str, Values]
) -> dict[str, Values]:
    """Return the wanted rows; for keys in `left`, the existing row, if any."""
    written = {key: values for key, values in wanted.items() if key not in left}
    return written | {key: there[key] for key in left & there.keys()}


class NodeTable:
    """Node rows of one cluster. Each method returns the names of those that changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, NodeValues] = {}

    def replace(self, listed: Iterable[NodeValues | Unread]) -> set[str]:
        """Make the rows equal to the list; leave rows of unreadable objects as they are."""
        listed = list(listed)
        wanted = {values.name: values for values in listed if isinstance(values, NodeValues)}
        rows = Node.objects.filter(cluster=self._cluster)
        there = {row[0]: NodeValues(*row) for row in rows.values_list(*NODE_FIELDS).iterator()}
        changed = [wanted[name] for name in sorted(wanted) if there.get(name) != wanted[name]]
        left = {one.name for one in listed if isinstance(one, Unread)} - wanted.keys()
        for values, why in refused(self._write, changed):
            skip(self._cluster.slug, "Node", {"name": values.name}, why)
            left.add(values.name)
        self._rows = merge_keeping(left, wanted, there)
        Node.objects.filter(cluster=self._cluster, name__in=there.keys() - self._rows.keys()).delete()
        return {name for name in there.keys() | self._rows.keys() if there.get(name) != self._rows.get(name)}

    def put(self, body: Json) -> set[str]:
        values = node_values(body)
        if self._rows.get(values.name) == values:
            return set()
        self._write([values])
        self._rows[values.name] = values
        return {values.name}

    def remove(self, body: Json) -> set[str]:
        name = body["metadata"]["name"]
        self._rows.pop(name, None)
        return {name} if Node.objects.filter(cluster=self._cluster, name=name).delete()[0] else set()

    def _write(self, changed: list[NodeValues]) -> None:
        Node.objects.bulk_create(
            [Node(cluster=self._cluster, **asdict(values)) for values in changed],
            update_conflicts=True,
            unique_fields=["cluster", "name"],
            update_fields=[name for name in NODE_FIELDS if name != "name"],
        )


class UsageTable:
    """PodUsage rows of one cluster. Each method that writes returns True if something changed."""

    def __init__(self, cluster: Cluster, installation: str) -> None:
        self._cluster = cluster
        self._installation = installation
        self._rows: dict[str, UsageValues] = {}

    def values(self, body: Json) -> UsageValues | None:
        return usage_values(body, self._installation)

    def replace(self, listed: Iterable[UsageValues | Unread | None]) -> bool:
        """Make the rows equal to the list; leave rows of unreadable objects as they are."""
        listed = list(listed)
        wanted = {values.uid: values for values in listed if isinstance(values, UsageValues)}
        rows = PodUsage.objects.filter(cluster=self._cluster)
        there = {row[0]: UsageValues(*row) for row in rows.values_list(*USAGE_FIELDS).iterator()}
        left = {one.uid for one in listed if isinstance(one, Unread)} - wanted.keys()
        changed = [values for uid, values in wanted.items() if there.get(uid) != values]
        for values, why in refused(self._write, changed):
            skip(self._cluster.slug, "Pod", {"namespace": values.namespace, "name": values.name}, why)
            left.add(values.uid)
        self._rows = merge_keeping(left, wanted, there)
        PodUsage.objects.filter(cluster=self._cluster, uid__in=there.keys() - self._rows.keys()).delete()
        return self._rows != there

    def put(self, body: Json) -> bool:
        values = self.values(body)
        if values is None:
            return self.remove(body)
        if self._rows.get(values.uid) == values:
            return False
        self._write([values])
        self._rows[values.uid] = values
        return True

    def remove(self, body: Json) -> bool:
        """Delete the pod's row. No query without one: most deleted pods lost theirs when they ended."""
        uid = body["metadata"]["uid"]
        if self._rows.pop(uid, None) is None:
            return False
        PodUsage.objects.filter(cluster=self._cluster, uid=uid).delete()
        return True

    def _write(self, changed: list[UsageValues]) -> None:
        PodUsage.objects.bulk_create(
            [PodUsage(cluster=self._cluster, **asdict(values)) for values in changed],
            batch_size=1000,
            update_conflicts=True,
            unique_fields=["cluster", "uid"],
            update_fields=[name for name in USAGE_FIELDS if name != "uid"],
        )
