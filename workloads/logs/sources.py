"""Sources of the logs that containers write: rooms above register for the label of their pods, in their `apps.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from clusters.labels import RUN
from clusters.pods.ends import terminal
from workloads.pods.status import index_of


@dataclass(frozen=True)
class Pod:
    """Pod with one container whose log is kept, as last heard."""

    namespace: str
    name: str
    uid: str
    holder_kind: str
    holder_id: UUID
    run: UUID
    container: str
    completion_index: int = 0
    is_placed: bool = False
    has_started: bool = False
    has_ended: bool = False
    restarts: int = 0


@dataclass(frozen=True)
class Source:
    """Holder of a log, with the part and the attempt of its run."""

    tenant_id: UUID
    index: int = 0
    attempt: int = 0


# Returns the source of a pod's log; None: no row knows the pod.
Describe = Callable[[Pod], Source | None]
# Returns the ids of a person's holders in a tenant, as a query: person, tenant.
Owned = Callable[[UUID, UUID], QuerySet[Any, Any]]


@dataclass(frozen=True)
class Kind:
    label: str  # of the pods; its value is the holder's id
    holder_kind: str
    container: str
    describe: Describe
    owned: Owned


_kinds: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    _kinds[kind.holder_kind] = kind


def describe(pod: Pod) -> Source | None:
    return _kinds[pod.holder_kind].describe(pod)


def owned_by(person_id: UUID, tenant_id: UUID) -> list[UUID]:
    """Return the ids of all that a person has in a tenant."""
    return [pk for kind in _kinds.values() for pk in kind.owned(person_id, tenant_id)]


def pod_of(body: Mapping[str, Any]) -> Pod | None:
    """Return what is followed of a pod; None if its log is not kept."""
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    kind = next((one for one in _kinds.values() if one.label in labels), None)
    if kind is None:
        return None
    status = body.get("status") or {}
    containers = status.get("containerStatuses") or []
    container: Mapping[str, Any] = next((one for one in containers if one.get("name") == kind.container), {})
    state = container.get("state") or {}
    try:
        return Pod(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            holder_kind=kind.holder_kind,
            holder_id=UUID(labels[kind.label]),
            run=UUID(labels[RUN]),
            container=kind.container,
            completion_index=index_of(body),
            is_placed=bool((body.get("spec") or {}).get("nodeName")),
            has_started=bool({"running", "terminated"} & set(state)) or bool(container.get("restartCount")),
            has_ended=terminal(body),
            restarts=int(container.get("restartCount") or 0),
        )
    except (KeyError, ValueError):
        return None  # somebody changed its labels
