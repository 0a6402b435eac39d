"""Jobs that are connected by waiting for each other, with the versions of datasets between them. Five queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import Q

from accounts.access import Actor
from jobs import access
from jobs.models import Dependency, Job
from storage.models import LATEST, Mount, Snapshot

MOST_JOBS = 60
# Both directions: what it waits for, and what waits for it. UNION drops what was found before, so that it ends.
CONNECTED = """
WITH RECURSIVE found(id) AS (
    SELECT %s::uuid
    UNION
    SELECT CASE WHEN one.job_id = found.id THEN one.predecessor_id ELSE one.job_id END
    FROM found JOIN jobs_dependency one ON found.id IN (one.job_id, one.predecessor_id)
)
SELECT id FROM found LIMIT %s
"""


@dataclass(frozen=True)
class Node:
    """Job, or a version of a dataset. `number`: None for a version that is not published yet."""

    id: str
    kind: str  # job, version
    name: str
    phase: str
    owner: str = ""
    number: int | None = None
    volume: str = ""


@dataclass(frozen=True)
class Edge:
    """Arrow from what comes first: `after` between jobs; `writes` to a version, `reads` from one."""

    first: str
    then: str
    kind: str
    on: str = ""


@dataclass(frozen=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    is_whole: bool = True  # False: there are more jobs


def graph_of(job: Job, actor: Actor) -> Graph:
    """Return the jobs that are connected with this one, as far as the actor sees them, at most MOST_JOBS."""
    with connection.cursor() as cursor:
        cursor.execute(CONNECTED, [job.pk, MOST_JOBS + 1])
        ids = [row[0] for row in cursor.fetchall()]
    is_there = Q(deleted_at=None) | Q(owner=actor.user) | Q(pk=job.pk)
    rows = access.visible(actor).filter(is_there, pk__in=ids[:MOST_JOBS])
    jobs = {
        one.pk: one for one in rows.select_related("owner", "writes", "version").order_by("created_at", "pk")
    }
    waits = Dependency.objects.filter(job__in=jobs, predecessor__in=jobs).order_by("pk")
    mounts = (
        Mount.objects.filter(holder__in=jobs).exclude(version="").select_related("volume__source__volume")
    )
    return connected(list(jobs.values()), list(waits), list(mounts), is_whole=len(ids) <= MOST_JOBS)


def connected(
    jobs: Iterable[Job], waits: Iterable[Dependency], mounts: Iterable[Mount], *, is_whole: bool = True
) -> Graph:
    """Return the graph of these rows. Pure."""
    jobs, waits = list(jobs), list(waits)
    nodes = [Node(str(one.pk), "job", one.name, one.phase, owner=one.owner.get_username()) for one in jobs]
    written = [(one, node) for one in jobs if (node := _written(one)) is not None]
    versions = {node.id: node for _job, node in written}
    edges = [Edge(str(one.predecessor_id), str(one.job_id), "after", one.on) for one in waits]
    edges += [Edge(str(one.pk), node.id, "writes") for one, node in written]
    by_id = {one.pk: one for one in jobs}
    first: dict[UUID, list[Job]] = {one.pk: [] for one in jobs}
    for wait in waits:
        first[wait.job_id].append(by_id[wait.predecessor_id])
    for mount in mounts:
        node = _read(mount, first[mount.holder])
        if node is not None:
            versions.setdefault(node.id, node)
            edges.append(Edge(node.id, str(mount.holder), "reads"))
    return Graph((*nodes, *versions.values()), tuple(edges), is_whole)


def _written(job: Job) -> Node | None:
    if job.writes is None:
        return None
    if job.version is not None:
        return _version(job.version, job.writes.name)
    return Node(f"of-{job.pk}", "version", job.writes.name, "", volume=str(job.writes.pk))


def _version(version: Snapshot, name: str) -> Node:
    volume = str(version.volume_id)
    return Node(str(version.pk), "version", name, version.phase, number=version.number, volume=volume)


def _read(mount: Mount, first: Iterable[Job]) -> Node | None:
    """Return the version that a mount reads: a job before it may be about to publish that."""
    dataset = mount.volume.rights
    if mount.version == LATEST:
        for job in first:
            if job.writes_id == dataset.pk:
                return _written(job)
    return _version(mount.volume.source, dataset.name) if mount.volume.source else None


def as_json(graph: Graph) -> Mapping[str, object]:
    """Return the graph as the API shows it."""
    return {
        "nodes": [
            {
                "id": node.id,
                "kind": node.kind,
                "name": node.name,
                "phase": node.phase or None,
                "owner": node.owner or None,
                "number": node.number,
                "volume": node.volume or None,
            }
            for node in graph.nodes
        ],
        "edges": [
            {"from": edge.first, "to": edge.then, "kind": edge.kind, "on": edge.on or None}
            for edge in graph.edges
        ],
        "is_whole": graph.is_whole,
    }
