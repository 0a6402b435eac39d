"""Rules for problems of a node and its GPUs. Pure: rows in, verdicts out.

A verdict holds as long as it is found again. An Xid happens only once, so the trouble that was opened for it remembers
it (`standing`), until the node has restarted, the driver reports that nothing is to be done, or an admin trusts the GPU
again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import DurationField, ExpressionWrapper, F, Q, Value
from django.db.models.functions import Greatest, Least
from django.db.models.lookups import LessThan

from clusters.explain import diagnose
from clusters.models import Gpu, Node
from clusters.nodes.gpus import RESOURCE
from clusters.nodes.node_labels import COUNT
from monitoring.health.xids import meaning_of
from monitoring.models import AgentState, FailedStart, Trouble, XidEvent

# Time for which a program's fault is reported: it is no state of the GPU.
HAPPENED_LASTS = timedelta(minutes=2)
# Within this time after an Xid, the driver's "nothing to be done" may be from before the Xid.
SETTLES = timedelta(seconds=10)
SLOWED_LASTS = timedelta(minutes=3)
# Silence of an agent: at least this long, and so many reports missing.
SILENT_AFTER = timedelta(minutes=2)
SILENT_REPORTS = 6

About = Trouble.About
# Codes that people on the node cannot use, or learn of in other words.
FOR_ADMINS = frozenset(
    {"node_lost", "agent_silent", "gpu_agent_limited", "gpu_repair_due", "gpu_test_failed", "gpu_plugin_down"}
    | {"part_crashing", "part_not_ready", "part_missing", "part_absent", "part_versions_differ"}
    | {"node_versions_differ", "versions_unfit", "node_overloaded", "node_network_faulty", "ceph_unwell"}
)


# A drain that an admin requested: people must leave the node. Opening the node ends it.
DRAINS = "node_drains"
CLOSES_WITHIN = timedelta(minutes=1)


class Out(StrEnum):
    """Extent of what takes nothing new because of a verdict."""

    NOTHING = ""
    GPU = "gpu"
    GPUS = "gpus"
    NODE = "node"


@dataclass(frozen=True)
class Verdict:
    """Problem: its subject, and what takes nothing new because of it."""

    about: About
    subject: str
    code: str
    out: Out = Out.NOTHING
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        return str(self.about), self.subject, self.code


@dataclass(frozen=True)
class Observed:
    """Facts about one node. `settled`: when errors last ended, by subject and code."""

    name: str
    now: datetime
    node: Node | None = None
    agent: AgentState | None = None
    gpus: Sequence[Gpu] = ()
    xids: Sequence[XidEvent] = ()
    failed_starts: Sequence[FailedStart] = ()
    standing: Sequence[Trouble] = ()
    settled: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    # Time since which Berth hears agents without a break; None: always.
    hears_since: datetime | None = None
    # Time of the last failed GPU test that nothing has overruled.
    failed_test_at: datetime | None = None

    @property
    def boot(self) -> str:
        return boot_of(self.node)


def boot_of(node: Node | None) -> str:
    """Return the ID of the node's present boot; "" if unknown."""
    return str(node.system.get("bootID", "")) if node else ""


def verdicts(seen: Observed) -> list[Verdict]:
    """Return each kind of problem once, as found first; none if the node is gone. Errors come before states, or the
    states would replace the memory of the errors."""
    if seen.node is None:
        return []
    found = [*xids_without_gpu(seen), *of_node(seen), *of_agent(seen), *of_drain(seen), *of_starts(seen)]
    if seen.failed_test_at is not None:
        at = {"at": seen.failed_test_at.isoformat()}
        found.append(Verdict(About.NODE, seen.name, "gpu_test_failed", Out.GPUS, data=at))
    for gpu in seen.gpus:
        found += of_gpu(gpu, seen)
    if not any(verdict.out for verdict in found):
        found += of_plugin(seen)
    return list({verdict.key: verdict for verdict in reversed(found)}.values())


# --- The node

PRESSURES = {
    "DiskPressure": "node_short_of_disk",
    "MemoryPressure": "node_short_of_memory",
    "PIDPressure": "node_short_of_memory",
    "NetworkUnavailable": "network_plugin_down",
}


def of_node(seen: Observed) -> Iterator[Verdict]:
    """Yield problems of the node. People on a lost node are notified by the end of their pods."""
    if seen.node is None:
        return
    if not seen.node.ready:
        told = {"condition": "Ready", "raw": seen.node.conditions.get("Ready", {}).get("message", "")}
        yield Verdict(About.NODE, seen.name, why_not_ready(seen.node), Out.NODE, data=told)
        return  # its other conditions are as old as its last contact
    for condition, code in PRESSURES.items():
        if seen.node.conditions.get(condition, {}).get("status") == "True":
            yield Verdict(About.NODE, seen.name, code, Out.NODE, data={"condition": condition})


def why_not_ready(node: Node) -> str:
    """Return why the node is not ready: a problem that its kubelet reports (runs mostly continue), or "node_lost"."""
    ready = node.conditions.get("Ready", {})
    code = diagnose("node", ready.get("message", "")).code if ready.get("status") == "False" else ""
    return code if code in UNABLE else "node_lost"


# Codes that become a problem of the node, if several pods met them there, or one pod several times.
UNABLE = frozenset({"network_plugin_down", "node_unwell"})
PODS_UNABLE, TIMES_UNABLE = 2, 3
UNABLE_LASTS = timedelta(minutes=10)


def of_starts(seen: Observed) -> Iterator[Verdict]:
    """Yield problems that keep pods from starting. Each affected start notifies its own person."""
    met: defaultdict[str, list[FailedStart]] = defaultdict(list)
    for row in seen.failed_starts:
        if seen.now - row.last_at >= UNABLE_LASTS:
            continue
        if row.is_volume:
            yield Verdict(About.VOLUME, f"{row.namespace}/{row.pod}", row.code, data={"raw": row.text})
        elif row.code in UNABLE:
            met[row.code].append(row)
    for code, those in met.items():
        if len(those) >= PODS_UNABLE or sum(row.count for row in those) >= TIMES_UNABLE:
            yield Verdict(About.NODE, seen.name, code, Out.NODE, data={"raw": those[0].text})


def of_drain(seen: Observed) -> Iterator[Verdict]:
    """Yield the drain as long as the node is closed. The cluster may take a moment to close it."""
    for trouble in seen.standing:
        if trouble.code == DRAINS and (
            seen.node is None or seen.node.unschedulable or seen.now - trouble.since < CLOSES_WITHIN
        ):
            yield Verdict(About.NODE, seen.name, DRAINS, Out.NODE, data=trouble.data)


# --- The agent

# Driver problems that affect every container of the node.
DRIVER_TROUBLES = {
    "driver_not_loaded": "gpu_driver_not_loaded",
    "version_mismatch": "gpu_driver_mismatch",
    "uvm_missing": "gpu_uvm_missing",
    "gpu_lost": "gpu_lost",
    "gpu_unreadable": "gpu_lost",
    "nvml_failed": "gpu_nvml_failed",
    "nvml_hangs": "gpu_stuck",
}
# With one of these an agent that reports tells of no GPU.
BLINDING = frozenset(
    {"library_missing", "driver_not_loaded", "version_mismatch", "device_files_missing", "no_permission"}
    | {"gpu_lost", "nvml_failed", "nvml_hangs", "no_gpus"}
)
# Running containers lost their devices; new ones get them.
LOST_INSIDE = "devices_denied"


def of_agent(seen: Observed) -> Iterator[Verdict]:
    """Yield problems that the agent reports. A problem of its own container only concerns admins, not the node."""
    if seen.agent is None:
        return
    was_silent = any(trouble.code == "agent_silent" for trouble in seen.standing)
    hears_since = None if was_silent else seen.hears_since
    if (seen.node is None or seen.node.ready) and is_silent(seen.agent, seen.now, hears_since):
        yield Verdict(About.NODE, seen.name, "agent_silent")
    for trouble in seen.agent.troubles:
        code, detail = trouble["code"], {"detail": f"{trouble['code']}: {trouble['detail']}"[:300]}
        if code == LOST_INSIDE:
            yield Verdict(About.NODE, seen.name, "gpu_vanished", data=detail)
        elif code in DRIVER_TROUBLES:
            yield Verdict(About.NODE, seen.name, DRIVER_TROUBLES[code], Out.GPUS, data=detail)
        else:
            yield Verdict(About.NODE, seen.name, "gpu_agent_limited", data=detail)


def is_silent(agent: AgentState, now: datetime, hears_since: datetime | None = None) -> bool:
    """Return True if the agent is silent. After an absence of Berth, count from its return: agents back off first."""
    pause = timedelta(seconds=SILENT_REPORTS * agent.interval_seconds)
    return now - max(agent.seen_at, hears_since or agent.seen_at) > max(SILENT_AFTER, pause)


def silent(now: datetime, hears_since: datetime) -> Q:
    """Return the same rule for rows in the database."""
    seconds = F("interval_seconds") * Value(timedelta(seconds=SILENT_REPORTS))
    pause = ExpressionWrapper(seconds, output_field=DurationField())
    awaited = Greatest("seen_at", Value(hears_since))
    return Q(LessThan(awaited, Least(Value(now - SILENT_AFTER), Value(now) - pause)))


def of_plugin(seen: Observed) -> Iterator[Verdict]:
    """Yield a node that has GPUs and offers none, though its agent reports no problem."""
    node, agent = seen.node, seen.agent
    if node is None or agent is None or not seen.gpus or is_silent(agent, seen.now) or agent.troubles:
        return
    has_offered = any(offered(node.capacity)) or node.labels.get(COUNT, "0") != "0"
    if has_offered and not any(offered(node.allocatable)):
        yield Verdict(About.NODE, seen.name, "gpu_plugin_down", Out.GPUS)


def offered(resources: Mapping[str, int]) -> list[int]:
    """Return the amount of each kind of GPU resource."""
    return [amount for name, amount in resources.items() if RESOURCE.search(name)]


# --- A GPU

STATES = {"lost": "gpu_lost", "gone": "gpu_lost", "reset_required": "gpu_stuck", "failing": "gpu_stuck"}
# The driver's required action; "none" ends the effect of an Xid.
NOTHING_TO_DO = "none"
TO_BE_RESET = ("gpu_reset", "bus_reset", "node_reboot", "system_reboot", "drain_and_reset")


def of_gpu(gpu: Gpu, seen: Observed) -> Iterator[Verdict]:
    if was_taken_away(gpu, seen):
        return
    yield from of_xids(gpu, seen)
    for code in dict.fromkeys(_states(gpu)):
        data = {"boot": seen.boot} if is_gone(gpu) else {}
        yield Verdict(About.GPU, gpu.uuid, code, Out.GPU, data=data)
    if gpu.sample.get("row_remap_pending") and not gpu.sample.get("row_remap_failed"):
        yield Verdict(About.GPU, gpu.uuid, "gpu_repair_due")
    if gpu.slowed_since is not None and seen.now - gpu.slowed_since >= SLOWED_LASTS:
        yield Verdict(About.GPU, gpu.uuid, "gpu_slowed")


def is_gone(gpu: Gpu) -> bool:
    return bool(gpu.sample.get("state") == "gone")


def was_taken_away(gpu: Gpu, seen: Observed) -> bool:
    """Return True if the GPU was gone before its node restarted and did not come back."""
    boots = {trouble.data.get("boot", "") for trouble in seen.standing if trouble.subject == gpu.uuid}
    return is_gone(gpu) and bool(seen.boot) and bool(boots - {"", seen.boot})


def _states(gpu: Gpu) -> Iterator[str]:
    if code := STATES.get(gpu.sample.get("state", "ok")):
        yield code
    if gpu.sample.get("recovery_action") in TO_BE_RESET:
        yield "gpu_stuck"
    if errors(gpu) > gpu.trusted_errors or gpu.sample.get("row_remap_failed"):
        yield "gpu_memory_damaged"


def errors(gpu: Gpu) -> int:
    """Return uncorrected memory errors since the driver was loaded."""
    return max(int(gpu.sample.get("ecc_uncorrected_since_boot") or 0), 0)


# Slowed by heat or missing power, not by a limit that somebody set.
SLOWED_BY = frozenset({"hardware", "heat", "hardware_heat", "power_brake"})


def is_slowed(gpu: Gpu) -> bool:
    return not SLOWED_BY.isdisjoint(gpu.sample.get("slowed_by") or ())


def of_xids(gpu: Gpu, seen: Observed) -> Iterator[Verdict]:
    """Yield the newest Xid of each code that still counts, from new events and from open troubles."""
    its = [event for event in seen.xids if event.gpu == gpu.uuid or (not event.gpu and len(seen.gpus) == 1)]
    for data in open_errors(About.GPU, gpu.uuid, its, gpu, seen):
        yield of_xid(About.GPU, gpu.uuid, data)


def xids_without_gpu(seen: Observed) -> Iterator[Verdict]:
    """Yield Xids without a GPU on a node with several: any may be affected. Skip faults of programs."""
    if len(seen.gpus) != 1:
        nobodys = [event for event in seen.xids if not event.gpu and meaning_of(event.xid).takes_out]
        for data in open_errors(About.NODE, seen.name, nobodys, None, seen):
            yield of_xid(About.NODE, seen.name, data)


def open_errors(
    about: About, subject: str, events: Iterable[XidEvent], gpu: Gpu | None, seen: Observed
) -> Iterable[Mapping[str, Any]]:
    """Return data of errors that are not over, the newest for each code."""
    found: dict[str, Mapping[str, Any]] = {}
    over: dict[str, datetime] = {}
    for trouble in seen.standing:
        if (trouble.about, trouble.subject) == (about, subject) and "xid" in trouble.data:
            if is_still_valid(trouble.code, trouble.data, gpu, seen):
                found[trouble.code] = trouble.data
            else:
                over[trouble.code] = datetime.fromisoformat(trouble.data["at"])
    for event in sorted(events, key=lambda event: event.at):
        code = meaning_of(event.xid).code
        data = {"xid": event.xid, "at": event.at.isoformat(), "boot": seen.boot}
        ends = [end for end in (seen.settled.get((subject, code)), over.get(code)) if end]
        if code and all(event.at > end for end in ends) and is_still_valid(code, data, gpu, seen):
            found[code] = data
    return found.values()


def is_still_valid(code: str, data: Mapping[str, Any], gpu: Gpu | None, seen: Observed) -> bool:
    """Return False once an error is over: by time, an admin's trust, a restart of the node, or the driver's word."""
    at = datetime.fromisoformat(data["at"])
    if gpu is not None and gpu.trusted_at is not None and gpu.trusted_at >= at:
        return False
    if not meaning_of(data["xid"]).takes_out:
        return seen.now - at <= HAPPENED_LASTS
    if data["boot"] and seen.boot and data["boot"] != seen.boot:
        return False
    is_mended = gpu is not None and gpu.sample.get("recovery_action") == NOTHING_TO_DO
    return not (is_mended and gpu and gpu.seen_at and gpu.seen_at - at > SETTLES)


def of_xid(about: About, subject: str, data: Mapping[str, Any]) -> Verdict:
    meaning = meaning_of(data["xid"])
    out = Out.NOTHING if not meaning.takes_out else Out.GPU if about == About.GPU else Out.GPUS
    return Verdict(about, subject, meaning.code, out, data=data)


def why_out(found: Iterable[Verdict], out: Out, subject: str) -> str:
    """Return the code for which nothing new starts there, always the same of several; "" if nothing prevents it."""
    return min((one.code for one in found if (one.out, one.subject) == (out, subject)), default="")
