"""Intake of a batch from a node's agent, in one transaction: all of it, once, whatever else reports about that node.

`agent` and `sequence` identify a report for ever, so a repeated report is skipped. The newest report gives the state of
a GPU; every report goes into the figures, at its own time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.errors import Refusal
from monitoring import measures
from monitoring.agent.schema import Batch, GpuSample, Head, Report
from monitoring.agent.schema import Trouble as ReportedTrouble
from monitoring.figures import store
from monitoring.figures.store import Sample, TrackIdentity
from monitoring.health import judging
from monitoring.health.rules import is_silent
from monitoring.intake import gpus, kills, states
from monitoring.intake.checks import Health
from monitoring.intake.holders import Held, Holders
from monitoring.models import AgentState, XidEvent
from storage import used

# A smaller difference is no wrong clock, but the way and the agent's wait before sending.
CLOCK_MAY_DIFFER = timedelta(seconds=30)
SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.5, 60.0
UNKNOWN_NODE_RETRY_SECONDS = 15
MOST_TROUBLES = 50


class NodeNotKnown(Refusal):
    """Refusal with status 503: the agent keeps its reports and retries once the node has been seen."""

    status = 503


class Clock:
    """Conversion of the node's times to Berth's clock, by `sent_at`. No time is in the future."""

    def __init__(self, sent_at: float, now: datetime) -> None:
        off = now.timestamp() - sent_at
        self._off = off if abs(off) > CLOCK_MAY_DIFFER.total_seconds() else 0.0
        self._now = now

    def ours(self, theirs: float) -> datetime:
        seconds = min(max(theirs + self._off, 0.0), self._now.timestamp())
        return datetime.fromtimestamp(seconds, UTC)


def take(cluster_id: UUID, batch: Batch, now: datetime) -> None:
    with transaction.atomic():
        taken = _take(cluster_id, batch, now)
    _take_volumes(cluster_id, batch, now)
    for outcome, count in (("taken", taken), ("repeated", len(batch["reports"]) - taken)):
        for _report in range(count):
            measures.REPORTS.count(outcome)


def _take(cluster_id: UUID, batch: Batch, now: datetime) -> int:
    name = batch["node"]
    state = _state(cluster_id, batch, now)
    reports = _new(state, batch)
    if not reports:
        return 0
    clock, newest = Clock(batch["sent_at"], now), reports[-1]
    node = gpus.read(cluster_id, name)
    if inventory := batch.get("inventory"):
        gpus.take_inventory(node, inventory["gpus"])
    holders = Holders(cluster_id, name, now)
    held = list(_held(node, reports, holders, clock))
    store.put(_figures(node, reports, held, holders, clock))
    if not newest["gpus"]:
        gpus.forget_samples(node)
    gpus.take_samples(node, newest["gpus"], held[-1], clock.ours(newest["taken_at"]))
    is_other = _take_xids(cluster_id, name, reports, clock) | node.is_other
    is_other |= _note_agent(state, batch, newest["troubles"], now)
    state.counts_oom_kills = "oom_kills" in newest
    kills.take(cluster_id, name, reports, clock.ours)
    _note_reports(state, batch, reports, clock)
    states.write(state)
    if is_other:
        judging.judge(cluster_id, name)
    return len(reports)


def _take_volumes(cluster_id: UUID, batch: Batch, now: datetime) -> None:
    """Store the newest use of volumes, in a transaction of its own: volumes are locked before a node's rows."""
    newest = next((report for report in reversed(batch["reports"]) if "volumes" in report), None)
    if newest is not None:
        measured = [used.Measured(**volume) for volume in newest["volumes"]]
        used.take(cluster_id, measured, Clock(batch["sent_at"], now).ours(newest["taken_at"]))


def take_health(cluster_id: UUID, report: Health, now: datetime) -> None:
    """Take in problems only, from an agent that has nothing else to report."""
    with transaction.atomic():
        state = _state(cluster_id, report, now)
        is_other = _note_agent(state, report, report["troubles"], now)
        states.write(state)
        if is_other:
            judging.judge(cluster_id, report["node"])


def _state(cluster_id: UUID, head: Head, now: datetime) -> AgentState:
    """Return the row of the node's agent, locked until the end of the transaction. Raise NodeNotKnown."""
    name = head["node"]
    judging.lock(cluster_id, name)
    state = states.read(cluster_id, name, now)
    if state is None:
        raise NodeNotKnown(
            "node_not_known",
            _("This cluster has no node of this name, or Berth has not seen it yet."),
            _("Keep the report and try again later. If this continues, check BERTH_AGENT_NODE on that node."),
            retry_after_seconds=UNKNOWN_NODE_RETRY_SECONDS,
        )
    return state


def _new(state: AgentState, batch: Batch) -> Sequence[Report]:
    last = state.sequence if state.pk and state.agent == _agent(batch) else -1
    reports = {report["sequence"]: report for report in batch["reports"] if report["sequence"] > last}
    return [reports[sequence] for sequence in sorted(reports)]


def _agent(head: Head) -> str:
    return head["agent"][:64]


def _note_agent(state: AgentState, head: Head, troubles: Sequence[ReportedTrouble], now: datetime) -> bool:
    """Update the agent's state. Return True if it changed."""
    before = (state.troubles, state.driver_version, state.cuda_version)
    is_news = not state.pk or is_silent(state, now)
    state.seen_at, state.troubles = now, [dict(trouble) for trouble in troubles[:MOST_TROUBLES]]
    state.dropped = min(max(head["dropped"], 0), 2**31 - 1)
    state.is_simulated = bool(head.get("simulated"))
    if inventory := head.get("inventory"):
        state.driver_version = inventory.get("driver_version", "")[:40]
        state.cuda_version = inventory.get("cuda_version", "")[:40]
    return is_news or before != (state.troubles, state.driver_version, state.cuda_version)


def _note_reports(state: AgentState, batch: Batch, reports: Sequence[Report], clock: Clock) -> None:
    """Update the position and the interval, which shrinks slowly: a report sent early for an Xid sets no new pace."""
    times = [clock.ours(report["taken_at"]) for report in reports]
    before = times[-2] if len(times) > 1 else state.taken_at if state.agent == _agent(batch) else None
    if before is not None:
        seconds = max((times[-1] - before).total_seconds(), state.interval_seconds * 0.8)
        state.interval_seconds = min(max(seconds, SHORTEST_INTERVAL), LONGEST_INTERVAL)
    state.agent, state.sequence, state.taken_at = _agent(batch), reports[-1]["sequence"], times[-1]


def _take_xids(cluster_id: UUID, node: str, reports: Sequence[Report], clock: Clock) -> bool:
    """Store the last Xid of each kind per look: a failing program may cause hundreds. Return True if there were any."""
    events = [
        XidEvent(
            cluster_id=cluster_id,
            node=node,
            gpu=xid.get("uuid", "")[:96],
            xid=min(max(xid["xid"], 0), 2**31 - 1),
            at=clock.ours(xid["at"]),
        )
        for report in reports
        for xid in {(xid.get("uuid"), xid["xid"]): xid for xid in report["xids"]}.values()
    ]
    XidEvent.objects.bulk_create(events)
    return bool(events)


# --- figures


def _held(node: gpus.Node, reports: Sequence[Report], holders: Holders, clock: Clock) -> Iterator[Held]:
    """Yield the holders at each report. If the kubelet was silent, those that remain of the report before."""
    known: Held = {uuid: gpu.held_by for uuid, gpu in node.gpus.items()}
    for report in reports:
        if "holdings" in report:
            known = holders.held(report["holdings"], node.facts, clock.ours(report["taken_at"]))
        else:
            known = holders.still_held(known)
        yield known


def _figures(
    node: gpus.Node, reports: Sequence[Report], held: Sequence[Held], holders: Holders, clock: Clock
) -> Iterator[Sample]:
    for report, known in zip(reports, held, strict=True):
        at = clock.ours(report["taken_at"])
        for sample in report["gpus"]:
            if sample["uuid"] in node.gpus:
                yield from _of_gpu(node, sample, holders, known, at)


def _of_gpu(
    node: gpus.Node, sample: GpuSample, holders: Holders, held: Held, at: datetime
) -> Iterator[Sample]:
    entries, label = held.get(sample["uuid"], []), f"GPU {node.gpus[sample['uuid']].index}"
    instances = {mig["uuid"]: mig for mig in sample.get("mig", ())}
    runs = holders.runs((entry for entry in entries if entry.get("device") not in instances), at)
    track = partial(TrackIdentity, node.cluster_id, node.name)
    yield Sample(
        track(sample["uuid"], label, runs),
        at.timestamp(),
        sample.get("utilization_percent"),
        sample.get("memory_used_mib"),
        sample.get("power_watts"),
        sample.get("temperature_celsius"),
    )
    if len({(entry["namespace"], entry["pod"]) for entry in entries}) > 1 and not instances:
        for run in sorted(runs):
            own = track(sample["uuid"], label, frozenset({run}), is_share=True)
            yield Sample(own, at.timestamp(), *_share(sample, holders, run))
    known = node.gpus[sample["uuid"]].facts.get("mig_devices", ())
    names = {mig["uuid"]: mig.get("name", "") for mig in known}
    for uuid, mig in instances.items():
        runs = holders.runs((entry for entry in entries if entry.get("device") == uuid), at)
        part = track(uuid[:96], f"{label} {names.get(uuid, '')}".strip()[:120], runs)
        yield Sample(part, at.timestamp(), mig.get("utilization_percent"), mig.get("memory_used_mib"))


def _share(sample: GpuSample, holders: Holders, run: UUID) -> tuple[float | None, float | None]:
    """Return use (percent) and memory (MiB) of the run's processes; None if the driver reported none."""
    own = [process for process in sample.get("processes", ()) if holders.run_of_process(process) == run]
    busy = [process["sm_percent"] for process in own if "sm_percent" in process]
    memory = [process["memory_mib"] for process in own if "memory_mib" in process]
    return (sum(busy) if busy else None, sum(memory) if memory else None)
