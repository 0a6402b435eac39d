"""Notification of people: each run gets the problems of its node and GPUs that it suffers from now.

Level-triggered: problems are computed anew from open troubles, holders of GPUs and nodes of pods. An event concerns
only people who were there, and a program's fault only the pod that alone had the GPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from accounts.locks import one_after_another
from clusters.models import Gpu, PodUsage
from monitoring.health.rules import FOR_ADMINS, UNABLE
from monitoring.health.xids import meaning_of
from monitoring.models import Trouble
from workloads import conditions
from workloads.conditions import Condition, Started
from workloads.models import EventRow
from workspaces.models import Workspace
from workspaces.naming import OBJECT_NAME

# Data of a trouble that is of use to people.
FOR_PEOPLE = ("xid", "percent", "until")
# A restart of the workspace ends this problem, though it lasts on the node.
ENDS_WITH_RESTART = "gpu_vanished"

Pod = tuple[str, str]  # namespace, name
PodOnNode = tuple[str, str, str]


@dataclass(frozen=True)
class OnNode:
    """Pods of Berth on the affected nodes, and all pods that have each GPU."""

    runs: Mapping[str, set[UUID]]
    run_of: Mapping[PodOnNode, UUID]
    run_of_claim: Mapping[str, UUID]
    holders: Mapping[str, set[Pod]]


def notify_people(cluster_id: UUID) -> None:
    with one_after_another(f"monitoring.telling {cluster_id}"):
        known = Trouble.objects.filter(cluster=cluster_id, ended_at=None)
        # A failed start notifies its own person; a condition of the node concerns all who are on it.
        of_starts = Q(code__in=UNABLE) & ~Q(data__has_key="condition")
        of_starts |= Q(about=Trouble.About.VOLUME) & ~Q(node="")
        for_admins = Q(code__in=FOR_ADMINS) & ~Q(data__has_key="xid")  # an Xid ended a person's program
        troubles = list(known.exclude(of_starts).exclude(for_admins))
        runs = conditions.started(cluster_id)
        there = on_nodes(cluster_id, troubles, runs)
        conditions.set_conditions(cluster_id, problems_by_run(troubles, there, runs))


def on_nodes(cluster_id: UUID, troubles: Iterable[Trouble], on: Started) -> OnNode:
    nodes = {trouble.node for trouble in troubles}
    runs: defaultdict[str, set[UUID]] = defaultdict(set)
    run_of: dict[PodOnNode, UUID] = {}
    holders: defaultdict[str, set[Pod]] = defaultdict(set)
    pods = PodUsage.objects.filter(cluster=cluster_id, node__in=nodes)
    for node, namespace, name, run, devices in pods.values_list(
        "node", "namespace", "name", "run", "devices"
    ):
        if run is not None:
            runs[node].add(run)
            run_of[node, namespace, name] = run
        for device in devices:
            holders[device["id"]].add((namespace, name))
    held = Gpu.objects.filter(cluster=cluster_id, node__in=nodes)
    for node, uuid, seen_at, held_by in held.values_list("node", "uuid", "seen_at", "held_by"):
        for one in held_by:
            pod = one["namespace"], one["pod"]
            began, _has_gpus = on.get(run_of.get((node, *pod)), (None, False))
            # Otherwise it was the run before: pods of one workspace have the same name.
            if began is None or seen_at is None or began <= seen_at:
                holders[uuid].add(pod)
    volumes = [trouble.subject for trouble in troubles if trouble.about == Trouble.About.VOLUME]
    return OnNode(runs, run_of, runs_of_claims(volumes), holders)


def runs_of_claims(subjects: Iterable[str]) -> dict[str, UUID]:
    """Return the run for each PVC with a workspace's ID in its name, if it is in that workspace's own namespace."""
    names = {subject: OBJECT_NAME.match(subject.partition("/")[2]) for subject in subjects}
    ids = {subject: UUID(found[1]) for subject, found in names.items() if found}
    rows = Workspace.objects.select_related("tenant").in_bulk(set(ids.values())) if ids else {}
    return {
        subject: row.run
        for subject, pk in ids.items()
        if (row := rows.get(pk)) and row.run and subject.startswith(f"{row.tenant.namespace}/")
    }


def problems_by_run(troubles: Iterable[Trouble], there: OnNode, runs: Started) -> dict[UUID, list[Condition]]:
    """Return the problems by run. Pure."""
    found: defaultdict[UUID, list[Condition]] = defaultdict(list)
    for trouble in sorted(troubles, key=lambda trouble: trouble.since):
        for run in affected_runs(trouble, there):
            at, has_gpus = runs.get(run, (None, False))
            if at is None or (trouble.code.startswith("gpu_") and not has_gpus):
                continue
            if not (began := happened(trouble)) or at < began:
                found[run].append(condition(trouble))
    return found


def affected_runs(trouble: Trouble, there: OnNode) -> Iterator[UUID]:
    """Yield the runs that the trouble affects."""
    if trouble.about == Trouble.About.NODE:
        yield from there.runs.get(trouble.node, ())
    elif trouble.about == Trouble.About.GPU:
        pods = there.holders.get(trouble.subject, set())
        if len(pods) == 1 or not is_of_a_program(trouble):
            on_it = {there.run_of.get((trouble.node, *pod)) for pod in pods}
            yield from (run for run in on_it if run)
    elif run := there.run_of_claim.get(trouble.subject):
        yield run


def is_of_a_program(trouble: Trouble) -> bool:
    return "xid" in trouble.data and meaning_of(trouble.data["xid"]).kind == "application"


def happened(trouble: Trouble) -> datetime | None:
    """Return the time of an event that concerns only runs of that time; None for a lasting problem."""
    if "xid" in trouble.data and not trouble.takes_out:
        return datetime.fromisoformat(trouble.data["at"])
    return trouble.since if trouble.code == ENDS_WITH_RESTART else None


def condition(trouble: Trouble) -> Condition:
    is_grave = trouble.takes_out and trouble.code.startswith("gpu_")
    data: dict[str, Any] = {name: trouble.data[name] for name in FOR_PEOPLE if name in trouble.data}
    return Condition(trouble.code, data, EventRow.Level.ERROR if is_grave else EventRow.Level.WARNING)
