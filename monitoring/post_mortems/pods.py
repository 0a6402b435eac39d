"""What the watch tells of the pods of runs: how their containers ended, and their events, as rows for a while.

Kubernetes forgets a pod with its namespace, and an event after an hour. `merged` is pure: bodies in, values out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.locks import forget
from clusters import labels
from clusters.models import Cluster
from clusters.watch.watching import Changed
from jobs import naming
from monitoring.models import OomKill, SeenPod
from workspaces.naming import workspace_of

Body = Mapping[str, Any]
# A record is filled within minutes of the end; a run that goes on tells its story in Berth's own events.
KEPT = timedelta(hours=6)
MOST_EVENTS = 30
MOST_ENDS = 20
LONGEST_MESSAGE = 500
LONGEST_WORD = 120
NAMESPACE_PREFIX = "berth-"


@dataclass
class Told:
    """News of one pod, or of a namespace that is deleted (without a name)."""

    namespace: str
    name: str = ""
    run: UUID | None = None
    node: str = ""
    status: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)


def on_objects_changed(*, cluster: Cluster, changes: Sequence[Changed], **_: object) -> None:
    if told := news(changes):
        write(cluster, told)


def news(changes: Iterable[Changed]) -> dict[str, Told]:
    """Return what the changes tell of the pods of runs, by the pods' uids."""
    told: dict[str, Told] = {}
    for step in changes:
        body = step.body
        match body.get("kind"):
            case "Pod":
                found = _of_pod(body)
                uid = body["metadata"]["uid"]
            case "Event" if step.change != "DELETED":
                found = _of_event(body)
                uid = (body.get("involvedObject") or {}).get("uid") or ""
            case "Namespace":
                found = _of_namespace(body, is_gone=step.change == "DELETED")
                uid = body["metadata"]["uid"]
            case _:
                continue
        if found is not None and uid:
            told[uid] = _joined(told[uid], found) if uid in told else found
    return told


def _joined(one: Told, other: Told) -> Told:
    return Told(
        one.namespace,
        other.name or one.name,
        other.run or one.run,
        other.node or one.node,
        merged_status(one.status, other.status),
        [*one.events, *other.events],
    )


def _of_pod(body: Body) -> Told | None:
    """Return how a pod of a run ended; None while all is well, and for pods of others."""
    metadata, status = body["metadata"], body.get("status") or {}
    run = _uuid((metadata.get("labels") or {}).get(labels.RUN))
    ends = list(_ends(status))
    reason = status.get("reason") or _disruption(status).get("reason")
    if run is None or not (ends or reason or status.get("phase") == "Failed"):
        return None
    if status.get("phase") == "Succeeded" and not any(one["exit_code"] for one in ends):
        return None
    said = status.get("message") or _disruption(status).get("message")
    return Told(
        metadata.get("namespace", ""),
        metadata["name"],
        run,
        str((body.get("spec") or {}).get("nodeName") or ""),
        {
            "phase": clean(status.get("phase"), LONGEST_WORD),
            "reason": clean(reason, LONGEST_WORD),
            "message": clean(said),
            "deleted_at": clean(metadata.get("deletionTimestamp"), LONGEST_WORD),
            "ends": ends,
        },
    )


def _disruption(status: Body) -> Body:
    """Return the condition that says that the node or the control plane ended the pod, or nothing."""
    conditions = status.get("conditions") or []
    found = (
        one for one in conditions if one.get("type") == "DisruptionTarget" and one.get("status") == "True"
    )
    return next(found, {})


def _ends(status: Body) -> Iterable[dict[str, Any]]:
    """Yield the ends of the pod's containers, those before a restart first."""
    for container in status.get("containerStatuses") or []:
        for state in ("lastState", "state"):
            ended = (container.get(state) or {}).get("terminated")
            if ended:
                yield {
                    "container": clean(container.get("name"), LONGEST_WORD),
                    "exit_code": ended.get("exitCode"),
                    "signal": ended.get("signal"),
                    "reason": clean(ended.get("reason"), LONGEST_WORD),
                    "started_at": clean(ended.get("startedAt"), LONGEST_WORD),
                    "finished_at": clean(ended.get("finishedAt"), LONGEST_WORD),
                    "has_restarted": state == "lastState",
                }


def _of_event(body: Body) -> Told | None:
    about = body.get("involvedObject") or {}
    name = str(about.get("name") or "")
    if about.get("kind") != "Pod" or (workspace_of(dict(body)) is None and naming.named_in(name) is None):
        return None
    at = body.get("lastTimestamp") or body.get("eventTime") or body["metadata"].get("creationTimestamp")
    source = body.get("source") or {}
    event = {
        "at": clean(at, LONGEST_WORD),
        "type": clean(body.get("type"), LONGEST_WORD),
        "reason": clean(body.get("reason"), LONGEST_WORD),
        "message": clean(body.get("message")),
        "count": count if isinstance(count := body.get("count"), int) else 1,
        "source": clean(source.get("component") or body.get("reportingComponent"), LONGEST_WORD),
    }
    return Told(str(about.get("namespace") or ""), name, events=[event])


def _of_namespace(body: Body, *, is_gone: bool) -> Told | None:
    metadata = body["metadata"]
    deleted_at = metadata.get("deletionTimestamp") or (timezone.now().isoformat() if is_gone else "")
    if not deleted_at or not metadata["name"].startswith(NAMESPACE_PREFIX):
        return None
    return Told(metadata["name"], status={"deleted_at": clean(deleted_at, LONGEST_WORD)})


def clean(text: object, longest: int = LONGEST_MESSAGE) -> str:
    """Return text that PostgreSQL can store, cut to a limit; "" for nothing."""
    return str(text or "").replace("\0", "").encode(errors="replace").decode()[:longest]


def _uuid(text: object) -> UUID | None:
    try:
        return UUID(str(text))
    except ValueError:
        return None


# --- rows


def merged_status(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the newer status with the ends of both. What one did not say, the other did. Pure."""
    ends = {
        (one["container"], one["finished_at"]): one
        for one in [*before.get("ends", ()), *after.get("ends", ())]
    }
    kept = {**before, **{name: value for name, value in after.items() if value}}
    return {**kept, "ends": list(ends.values())[-MOST_ENDS:]} if ends else kept


def merged_events(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the newest events in order of time, each text once with its newest time and count. Pure."""
    found = {(one["reason"], one["message"]): dict(one) for one in [*before, *after]}
    return sorted(found.values(), key=lambda one: str(one["at"]))[-MOST_EVENTS:]


def write(cluster: Cluster, told: Mapping[str, Told]) -> None:
    """Add the news to the pods' rows, with two statements for any number."""
    now = timezone.now()
    with transaction.atomic():
        known = {row.uid: row for row in SeenPod.objects.filter(cluster=cluster, uid__in=list(told))}
        rows = []
        for uid, one in sorted(told.items()):
            row = known.get(uid) or SeenPod(cluster=cluster, uid=uid)
            row.namespace, row.name = one.namespace[:253], one.name[:253]
            row.run, row.node = one.run or row.run, (one.node or row.node)[:253]
            row.status = merged_status(row.status, one.status)
            row.events = merged_events(row.events, one.events)
            row.seen_at, row.pk = now, None
            rows.append(row)
        SeenPod.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["cluster", "uid"],
            update_fields=["namespace", "name", "run", "node", "status", "events", "seen_at"],
        )


def forget_old() -> None:
    before = timezone.now() - KEPT
    forget(SeenPod.objects.filter(seen_at__lt=before))
    forget(OomKill.objects.filter(last_at__lt=before))
