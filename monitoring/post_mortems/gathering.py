"""Gather what is known of a run that ended badly, as plain values: from the rows of all rooms, never from the cluster.

`missing` names what nobody told. Names of other people's pods and volumes' holders are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from clusters.models import Gpu, Node
from jobs.models import Attempt
from jobs.models import Event as JobEvent
from monitoring.health.rules import is_silent
from monitoring.models import AgentState, OomKill, PostMortem, SeenPod, Trouble, XidEvent
from quotas.models import Claim
from storage.models import FULL_PERCENT, Volume
from storage.mounts.leasing import NO_USE, uses_of
from storage.mounts.mounting import mounts_of
from workloads import devices
from workloads.figures import moment, number
from workloads.logs.models import LogStream
from workloads.logs.reading import Wanted, last, of_holder
from workspaces.models import Event as WorkspaceEvent

Json = dict[str, Any]

# Times around a run that belong to it: reports may be of the seconds after its end.
AFTER = timedelta(seconds=60)
LONGEST_LOOK_BACK = timedelta(days=1)
MOST_LINES, LONGEST_LINE, MOST_BYTES = 200, 2000, 64 * 2**10
MOST_XIDS, MOST_TROUBLES, MOST_STORY = 50, 50, 60
LONGEST_RAW = 500
# As first seen: they change, or go, soon after an end.
AS_FIRST_SEEN = ("node", "agent", "volumes")
HEALTH = (
    "state", "temperature_celsius", "recovery_action", "ecc_uncorrected_since_boot", "row_remap_pending",
    "row_remap_failed", "slowed_by",
)  # fmt: skip
PEAKS = """
    SELECT max(memory_mib) FILTER (WHERE device <> ''), max(memory_mib) FILTER (WHERE device = '')
    FROM monitoring_track AS track JOIN monitoring_figure AS figure ON figure.track_id = track.id
    WHERE track.runs @> ARRAY[%s]::uuid[] AND (cardinality(runs) = 1 OR is_share)
"""


class Times:
    """Time in which something concerns a run: from its start, at most a day before its end, to a minute after."""

    def __init__(self, record: PostMortem) -> None:
        begin = record.started_at or record.ended_at - timedelta(hours=1)
        self.since = max(begin, record.ended_at - LONGEST_LOOK_BACK)
        self.until = record.ended_at + AFTER


def gather(record: PostMortem) -> Json:
    """Return all facts but the log. What was seen first of what soon changes stays as it was seen."""
    times = Times(record)
    pods = list(SeenPod.objects.filter(run=record.pk).order_by("name"))
    claim = Claim.objects.select_related("pool").filter(pk=record.pk).first()
    attempt = (
        Attempt.objects.filter(run=record.pk).first() if record.holder_kind == Claim.Holder.JOB else None
    )
    nodes = nodes_of(record, pods, attempt)
    gpus, use = gpus_of(record, pods, attempt, nodes)
    found: Json = {
        "nodes": nodes,
        "size": size_of(claim),
        "gpus": gpus,
        "gpu_use_percent": use,
        **peaks_of(record.pk),
        "ends": ends_of(pods, attempt),
        "pods": [pod_json(pod) for pod in pods],
        "events": events_of(pods),
        "oom_kills": oom_kills_of(record, pods),
        "xids": xids_of(record, nodes, {one["uuid"] for one in gpus}, times),
        "troubles": troubles_of(record, nodes, {one["uuid"] for one in gpus}, times),
        "node": node_of(record),
        "agent": agent_of(record),
        "volumes": volumes_of(record.holder_id),
        "story": story_of(record),
        "namespace_deleted_at": namespace_deleted(record, pods, times),
    }
    kept = {name: record.facts[name] for name in AS_FIRST_SEEN if record.facts.get(name)}
    return found | kept


def nodes_of(record: PostMortem, pods: Iterable[SeenPod], attempt: Attempt | None) -> list[str]:
    of_members = attempt.nodes if attempt else []
    names = [record.node, *of_members, *(pod.node for pod in pods)]
    return list(dict.fromkeys(filter(None, names)))


def size_of(claim: Claim | None) -> Json | None:
    if claim is None:
        return None
    return {
        "gpus": number(round(float(claim.pool.gpus(claim.units)), 4)),
        "cpu": number(claim.cpu_millicores / 1000),
        "memory_mib": claim.memory_mib,
        "nodes": claim.members,
    }


# --- GPUs


def gpus_of(
    record: PostMortem, pods: Sequence[SeenPod], attempt: Attempt | None, nodes: Collection[str]
) -> tuple[list[Json], float | None]:
    """Return the run's GPUs with their health, and the mean of their use."""
    had = devices.of([record.pk]).get(record.pk, devices.NONE)
    uids = {pod.uid for pod in pods}
    rows = list(Gpu.objects.filter(cluster=record.cluster_id, node__in=nodes).order_by("node", "index"))
    held = [gpu.uuid for gpu in rows if any(entry.get("uid") in uids for entry in gpu.held_by)]
    uuids = dict.fromkeys([*had.uuids, *(attempt.gpus if attempt else ()), *held, *record.gpus])
    by_uuid = {gpu.uuid: gpu for gpu in rows}
    return [gpu_json(uuid, by_uuid.get(uuid)) for uuid in uuids], had.use_percent


def gpu_json(uuid: str, gpu: Gpu | None) -> Json:
    if gpu is None:
        return {"uuid": uuid, "name": None, "index": None, "node": None, "out_code": None, "health": {}}
    return {
        "uuid": uuid,
        "name": gpu.name or None,
        "index": gpu.index,
        "node": gpu.node,
        "out_code": gpu.out_code or None,
        "health": {name: gpu.sample[name] for name in HEALTH if name in gpu.sample},
    }


def peaks_of(run: UUID) -> Json:
    with connection.cursor() as cursor:
        cursor.execute(PEAKS, [run])
        gpu, pod = cursor.fetchone()
    return {"gpu_memory_peak_mib": gpu, "memory_peak_mib": pod}


def xids_of(record: PostMortem, nodes: Collection[str], gpus: Collection[str], times: Times) -> list[Json]:
    """Return the driver's errors on the run's GPUs, and those of which the driver did not name the GPU."""
    rows = XidEvent.objects.filter(
        Q(gpu__in=gpus) | Q(gpu=""),
        cluster=record.cluster_id,
        node__in=nodes,
        at__range=(times.since, times.until),
    )
    return [
        {"at": moment(row.at), "xid": row.xid, "gpu": row.gpu or None, "node": row.node}
        for row in rows.order_by("-at")[:MOST_XIDS]
    ]


# --- pods


def ends_of(pods: Iterable[SeenPod], attempt: Attempt | None) -> list[Json]:
    """Return how containers ended, by the watch; else as the attempt's own row has it."""
    found = [
        {"pod": pod.name, "node": pod.node or None, **one}
        for pod in pods
        for one in pod.status.get("ends", ())
    ]
    if not found and attempt is not None:
        found = [
            {
                "pod": None, "node": one["node"] or None, "container": "job", "exit_code": one["exit_code"],
                "signal": None, "reason": "OOMKilled" if one["reason"] == "out_of_memory" else "",
                "started_at": "", "finished_at": "", "has_restarted": False,
            }
            for one in attempt.members.values()
            if one["exit_code"] is not None
        ]  # fmt: skip
    return sorted(found, key=lambda one: str(one["finished_at"]))


def pod_json(pod: SeenPod) -> Json:
    status = pod.status
    names = ("phase", "reason", "message", "deleted_at")
    return {"name": pod.name, "node": pod.node or None, **{name: status.get(name) or None for name in names}}


def events_of(pods: Iterable[SeenPod]) -> list[Json]:
    found = [{"pod": pod.name, **one} for pod in pods for one in pod.events]
    return sorted(found, key=lambda one: str(one["at"]))


def oom_kills_of(record: PostMortem, pods: Iterable[SeenPod]) -> Json | None:
    """Return how many processes the kernel ended for memory, as the agents counted; None: no agent counts there.

    The count of a pod holds those of its containers where the node has cgroup version 2.
    """
    rows = OomKill.objects.filter(cluster=record.cluster_id, pod_uid__in=[pod.uid for pod in pods])
    kills = last_at = None
    for pod_uid in {row.pod_uid for row in rows}:
        its = [row for row in rows if row.pod_uid == pod_uid]
        whole = sum(row.kills for row in its if not row.container)
        kills = (kills or 0) + max(whole, sum(row.kills for row in its if row.container))
        last_at = max([row.last_at for row in its] + ([last_at] if last_at else []))
    if kills is not None:
        return {"kills": kills, "last_at": moment(last_at)}
    counts = AgentState.objects.filter(cluster=record.cluster_id, node=record.node, counts_oom_kills=True)
    return {"kills": 0, "last_at": None} if counts.exists() else None


def namespace_deleted(record: PostMortem, pods: Iterable[SeenPod], times: Times) -> str | None:
    """Return when the run's namespace was deleted in the cluster, if it was."""
    names = {pod.namespace for pod in pods} | {record.tenant.namespace}
    rows = SeenPod.objects.filter(cluster=record.cluster_id, namespace__in=names, name="")
    row = rows.filter(seen_at__range=(times.since, times.until)).order_by("seen_at").first()
    return row.status.get("deleted_at") if row else None


# --- health at that time


def node_of(record: PostMortem) -> Json | None:
    row = Node.objects.filter(cluster=record.cluster_id, name=record.node).first()
    if row is None:
        return None
    return {
        "name": row.name,
        "ready": row.ready,
        "unschedulable": row.unschedulable,
        "out_code": row.out_code or None,
        "gpus_out_code": row.gpus_out_code or None,
        "conditions": [
            {"type": kind, **{name: str(one.get(name) or "") for name in ("status", "reason", "message")}}
            for kind, one in sorted(row.conditions.items())
        ],
        "system": {
            name: row.system.get(name)
            for name in ("kubeletVersion", "containerRuntimeVersion", "kernelVersion")
            if row.system.get(name)
        },
        "seen_at": moment(timezone.now()),
    }


def agent_of(record: PostMortem) -> Json | None:
    row = AgentState.objects.filter(cluster=record.cluster_id, node=record.node).first()
    if row is None:
        return None
    return {
        "seen_at": moment(row.seen_at),
        "silent": is_silent(row, timezone.now()),
        "driver_version": row.driver_version or None,
        "cuda_version": row.cuda_version or None,
        "troubles": [{"code": one["code"], "detail": one["detail"][:LONGEST_RAW]} for one in row.troubles],
        "counts_oom_kills": row.counts_oom_kills,
        "simulated": row.is_simulated,
    }


def troubles_of(
    record: PostMortem, nodes: Collection[str], gpus: Collection[str], times: Times
) -> list[Json]:
    """Return problems of the run's nodes and GPUs at its end, those of other people's GPUs and pods left out."""
    concerns = Q(about=Trouble.About.NODE) | Q(about=Trouble.About.GPU, subject__in=gpus)
    standing = Q(ended_at=None) | Q(ended_at__gte=max(times.since, record.ended_at - timedelta(minutes=10)))
    rows = Trouble.objects.filter(
        concerns, standing, cluster=record.cluster_id, node__in=nodes, since__lte=times.until
    )
    return [
        {
            "about": row.about,
            "subject": row.subject,
            "code": row.code,
            # What a node said as a whole may name pods of others.
            "data": {name: value for name, value in row.data.items() if name != "raw"},
            "takes_out": row.takes_out,
            "since": moment(row.since),
            "ended_at": moment(row.ended_at),
        }
        for row in rows.order_by("since")[:MOST_TROUBLES]
    ]


# --- storage


def volumes_of(holder: UUID) -> list[Json]:
    mounts = mounts_of([holder]).get(holder, [])
    uses = uses_of({one.volume_id for one in mounts}) if mounts else {}
    return [
        {
            "volume": str(one.volume.rights.pk),
            "name": one.volume.rights.name,
            "kind": one.volume.kind,
            "path": one.path,
            "read_only": one.read_only,
            "version": one.version or None,
            "phase": one.volume.phase,
            "used_percent": one.volume.used_percent,
            "full": (one.volume.used_percent or 0) >= FULL_PERCENT,
            "size_mib": one.volume.size_mib,
            "problem": problem_of(one.volume),
            "attached_to": one.volume.attached_to,
            "lease": lease_of(uses.get(one.volume_id, NO_USE).lease),
        }
        for one in mounts
    ]


def problem_of(volume: Volume) -> Json | None:
    if not volume.problem:
        return None
    return {"code": volume.problem, "data": shortened(volume.problem_data)}


def lease_of(lease: Mapping[str, Any]) -> Json:
    """Return the state of a lease: how many hold it and wait for it, not who."""
    return {"mode": lease["mode"], "holders": len(lease["holders"]), "waiting": len(lease["waiting"])}


# --- Berth's own story


def story_of(record: PostMortem) -> list[Json]:
    """Return Berth's events of the run, oldest first."""
    rows: Any
    if record.holder_kind == Claim.Holder.WORKSPACE:
        rows = WorkspaceEvent.objects.filter(workspace=record.holder_id, run=record.pk)
    else:
        rows = JobEvent.objects.filter(job=record.holder_id, run=record.pk)
    newest = list(rows.order_by("-number")[:MOST_STORY])[::-1]
    return [
        {"at": moment(row.at), "level": row.level, "code": row.code, "data": shortened(row.data)}
        for row in newest
    ]


def shortened(data: Mapping[str, Any]) -> Json:
    return {name: value[:LONGEST_RAW] if isinstance(value, str) else value for name, value in data.items()}


# --- the log


def lines_of(record: PostMortem) -> tuple[list[Json], bool]:
    """Return the run's last lines, and whether its logs are read to their end."""
    streams = list(LogStream.objects.filter(holder_id=record.holder_id, run=record.pk))
    is_whole = bool(streams) and all(stream.ended_at is not None for stream in streams)
    shown = last(Wanted(of_holder(record.holder_id, run=record.pk)), MOST_LINES) if streams else []
    found = [(moment(one.at), one.text) for one in shown]
    if not found and record.holder_kind == Claim.Holder.JOB:
        tail = Attempt.objects.filter(run=record.pk).values_list("tail", flat=True).first()
        found = [(None, text) for text in (tail or "").splitlines()]
    return cut(found), is_whole


def cut(lines: Sequence[tuple[datetime | str | None, str]]) -> list[Json]:
    """Return the last lines that fit, with their times. Pure."""
    kept: list[Json] = []
    size = 0
    for at, line in reversed(lines[-MOST_LINES:]):
        text = line[:LONGEST_LINE]
        size += len(text.encode(errors="replace"))
        if size > MOST_BYTES:
            break
        kept.append({"at": at, "text": text})
    return kept[::-1]


def missing(record: PostMortem, facts: Mapping[str, Any], lines: Sequence[Any], *, whole: bool) -> list[str]:
    """Name what nobody told of the run. Pure."""
    agent, size = facts.get("agent"), facts.get("size") or {}
    absent = {
        "pod": not facts.get("ends") and not any(pod["reason"] for pod in facts.get("pods", ())),
        "events": not facts.get("events"),
        "log": not lines,
        "log_end": bool(lines) and not whole,
        "node": facts.get("node") is None,
        "agent": agent is None,
        "agent_silent": agent is not None and agent["silent"],
        "oom_kills": agent is not None and facts.get("oom_kills") is None,
        "gpus": bool(size.get("gpus")) and not facts.get("gpus"),
    }
    return [name for name, is_so in absent.items() if is_so]
