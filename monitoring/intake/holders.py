"""Runs that have each GPU of a node at a time.

The kubelet reports pods by name. It reports HAMi's cards without a UUID; the pod's own row names those. A late report
is about pods that are gone: the workspace's runs tell which had the GPU then.

While the kubelet is silent, a GPU keeps its last reported holder as long as that same pod exists: the next pod of the
same name may have another GPU, and another pod this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from clusters.models import PodUsage
from jobs import naming
from monitoring.agent.schema import GpuFacts, Holding
from monitoring.intake import rows
from quotas.models import Claim

# Age from which a report is late: the pods of now say nothing about it.
LATE = timedelta(minutes=2)
# Number of a workspace's newest runs that a late report may be about.
MOST_RUNS = 100
ON_NODE = """
    FROM clusters_podusage AS row
    WHERE cluster_id = %s AND node = %s AND (run IS NOT NULL OR devices <> '[]') ORDER BY id
"""
_POD = re.compile(r"ws-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-\d+")

Held = dict[str, list[dict[str, Any]]]


class Holders:
    """Holders of one node's GPUs. Its pods are read once, earlier runs only for late reports."""

    def __init__(self, cluster_id: UUID, node: str, now: datetime) -> None:
        pods = rows.read(PodUsage, ON_NODE, (cluster_id, node))
        self._cluster_id = cluster_id
        self._by_name = {(pod.namespace, pod.name): pod for pod in pods}
        self._by_uid = {pod.uid: pod.run for pod in pods}
        self._late_before = now - LATE
        self._past: dict[str, list[tuple[UUID, datetime, datetime | None]]] = {}

    def held(self, holdings: Iterable[Holding], gpus: Iterable[GpuFacts], at: datetime) -> Held:
        """Return the holders of each GPU by its UUID. `device` names the part if the GPU is divided."""
        parents = {mig["uuid"]: gpu["uuid"] for gpu in gpus for mig in gpu["mig_devices"]}
        held: Held = {}
        for holding in holdings:
            who = {key: holding[key] for key in ("namespace", "pod", "container")}
            if (pod := self._pod(who)) and at >= self._late_before:
                who["uid"] = pod.uid
            for uuid, device in self._devices(holding, parents):
                entry = who | ({"device": device} if device else {})
                if entry not in held.setdefault(uuid, []):
                    held[uuid].append(entry)
        return held

    def still_held(self, known: Held) -> Held:
        """Return the last reported holders that still exist. Pods outside of Berth stay."""
        return {uuid: [entry for entry in entries if self._stays(entry)] for uuid, entries in known.items()}

    def _stays(self, entry: Mapping[str, Any]) -> bool:
        if "uid" in entry:
            return entry["uid"] in self._by_uid
        return (
            self._pod(entry) is None
            and not _POD.fullmatch(entry["pod"])
            and not naming.named_in(entry["pod"])
        )

    def _pod(self, entry: Mapping[str, Any]) -> PodUsage | None:
        return self._by_name.get((entry["namespace"], entry["pod"]))

    def _devices(self, holding: Holding, parents: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return (GPU, part of it) pairs; "": the whole GPU."""
        if (uuid := holding.get("uuid")) is None:
            pod = self._pod(holding)
            return [(str(card["id"]), str(card["id"])) for card in pod.devices] if pod else []
        if uuid in parents:
            return [(parents[uuid], uuid)]
        is_cut = "::" in holding["device"] or "/" in holding["device"]
        return [(uuid, holding["device"] if is_cut else "")]

    def runs(self, entries: Iterable[Mapping[str, Any]], at: datetime) -> frozenset[UUID]:
        """Return the runs of Berth among the holders."""
        return frozenset(run for run in (self._run(entry, at) for entry in entries) if run)

    def run_of_process(self, process: Mapping[str, Any]) -> UUID | None:
        return self._by_uid.get(process.get("pod_uid", ""))

    def _run(self, entry: Mapping[str, Any], at: datetime) -> UUID | None:
        if "uid" in entry:
            return self._by_uid.get(entry["uid"])
        if at >= self._late_before:
            pod = self._pod(entry)
            return pod.run if pod else None
        for run, since, until in self._named(entry["pod"]):
            if since <= at and (until is None or at < until):
                return run
        return None

    def _named(self, pod: str) -> list[tuple[UUID, datetime, datetime | None]]:
        """Return the runs that a pod of this name may have been of: of a workspace's several, of a job's its own."""
        if pod not in self._past:
            attempt, workspace = naming.named_in(pod), _POD.fullmatch(pod)
            which = Q(pk=attempt) if attempt else Q(holder_id=workspace[1]) if workspace else Q(pk__in=[])
            # A reported pod name may be anything: an agent must not reach runs of another cluster.
            ours = Claim.objects.filter(which, pool__cluster=self._cluster_id, admitted_at__isnull=False)
            times = ours.order_by("-admitted_at").values_list("pk", "admitted_at", "released_at")
            self._past[pod] = [(run, since, until) for run, since, until in times[:MOST_RUNS] if since]
        return self._past[pod]
