"""Nodes and their GPUs for admins: state, workspaces on them, problems and errors.

`glances` reads a list of nodes in four queries; `NodeStory` reads one node for its own page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any
from uuid import UUID

from django.db.models import Count, Q
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from clusters.causes.commands import Step
from clusters.explain import steps
from clusters.models import Gpu, Node, PodUsage
from clusters.nodes.gpus import RESOURCE, NodeKey, gpus_on
from jobs.models import Attempt
from monitoring.figures.series import Figures, of_node
from monitoring.health.xids import meaning_of
from monitoring.models import AgentState, NodeLoad, Trouble, Validation, XidEvent
from monitoring.panels import NOTHING, said
from monitoring.validation import queries as validations
from quotas.pools.gpu_reports import FRESH
from workloads.models import Workload
from workspaces.models import Workspace
from workspaces.state import story

WINDOW = "24h"
MOST_TROUBLES, MOST_XIDS, MOST_TESTS = 30, 30, 5


@dataclass
class Glance:
    """Summary of a node in a list."""

    gpus: list[Gpu] = field(default_factory=list)
    agent: AgentState | None = None
    runs: int = 0
    troubles: list[Trouble] = field(default_factory=list)

    @property
    def busy_percent(self) -> int | None:
        """Return the mean use of GPUs that reported recently, or None."""
        now = timezone.now()
        fresh = [gpu for gpu in self.gpus if gpu.seen_at and now - gpu.seen_at < FRESH]
        figures = [gpu.utilization_percent for gpu in fresh if gpu.utilization_percent is not None]
        return round(mean(figures)) if figures else None


def glances(nodes: Sequence[Node]) -> dict[NodeKey, Glance]:
    """Return a glance per node, in four queries for all nodes."""
    found: defaultdict[NodeKey, Glance] = defaultdict(Glance)
    names, clusters = {node.name for node in nodes}, {node.cluster_id for node in nodes}
    there: dict[str, Any] = {"cluster__in": clusters, "node__in": names}
    for place, gpus in gpus_on(nodes).items():
        found[place].gpus = gpus
    for agent in AgentState.objects.filter(**there):
        found[agent.cluster_id, agent.node].agent = agent
    runs = PodUsage.objects.filter(**there, run__isnull=False).values_list("cluster_id", "node")
    for cluster, node, count in runs.annotate(count=Count("pk")):
        found[cluster, node].runs = count
    for trouble in Trouble.objects.filter(**there, ended_at=None):
        found[trouble.cluster_id, trouble.node].troubles.append(trouble)
    return found


def state_of(node: Node, glance: Glance) -> tuple[str, str]:
    """Return the state (ok, warn or bad) and its text."""
    if node.out_code:
        return "bad", story.sentence(node.out_code, {"node": node.name})
    if not node.ready:
        return "bad", _("not ready")
    if node.unschedulable:
        return "warn", _("closed for new work")
    if node.gpus_out_code:
        return "warn", story.sentence(node.gpus_out_code, {"node": node.name})
    if broken := sum(bool(gpu.out_code) for gpu in glance.gpus):
        text = ngettext("%(count)d of its GPUs is out of use", "%(count)d of its GPUs are out of use", broken)
        return "warn", text % {"count": broken}
    return "ok", _("in use")


@dataclass(frozen=True)
class GpuLine:
    """GPU in a table; `facts` are (name, figure) pairs."""

    gpu: Gpu
    why_out: str
    facts: list[tuple[str, str]]


@dataclass(frozen=True)
class Holder:
    """Pod on the node that is of a workload or has GPUs, and the indexes of the GPUs that it was given, if known."""

    pod: PodUsage
    workload: Workload | None
    page: str
    gpus: str


@dataclass(frozen=True)
class Xid:
    event: XidEvent
    gpu: str
    words: str


@dataclass
class NodeStory:
    node: Node

    @cached_property
    def glance(self) -> Glance:
        return glances([self.node])[self.node.cluster_id, self.node.name]

    @cached_property
    def figures(self) -> Figures:
        return of_node(self.node.cluster_id, self.node.name, WINDOW)

    @property
    def conditions(self) -> list[tuple[str, str, str]]:
        """Return (name, status, message of Kubernetes) per condition."""
        return [
            (name, str(told.get("status", "")), str(told.get("message", "")))
            for name, told in sorted(self.node.conditions.items())
        ]

    @property
    def versions(self) -> list[tuple[str, str]]:
        system, agent = self.node.system, self.glance.agent
        versions = [
            (_("driver"), agent.driver_version if agent else ""),
            ("CUDA", agent.cuda_version if agent else ""),
            (_("kernel"), system.get("kernelVersion", "")),
            ("kubelet", system.get("kubeletVersion", "")),
            (_("container runtime"), system.get("containerRuntimeVersion", "")),
            (_("system"), system.get("osImage", "")),
        ]
        return [(name, version or NOTHING) for name, version in versions]

    @cached_property
    def load(self) -> list[tuple[str, str]]:
        """Return the node's load and its storage's as name and figure; empty without a Prometheus that tells them."""
        rows = NodeLoad.objects.filter(cluster=self.node.cluster_id, node__in=("", self.node.name))
        found = {row.node: row.figures for row in rows}
        return [*load_lines(found.get(self.node.name, {})), *ceph_lines(found.get("", {}))]

    @property
    def gpus(self) -> list[GpuLine]:
        return [gpu_line(gpu) for gpu in self.glance.gpus]

    @cached_property
    def holders(self) -> list[Holder]:
        pods = PodUsage.objects.filter(cluster=self.node.cluster_id, node=self.node.name)
        ours = {pod.run for pod in pods if pod.run}
        of_run = workloads_of(ours)
        given: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        for gpu in self.glance.gpus:
            for held in gpu.held_by:
                given[held["namespace"], held["pod"]].add(gpu.index)
        found = [
            Holder(pod, *of_run.get(pod.run, NOBODY), gpus=indexes(given[pod.namespace, pod.name]))
            for pod in pods
            if pod.run or (pod.namespace, pod.name) in given or any(map(RESOURCE.search, pod.requests))
        ]
        return sorted(found, key=lambda holder: (holder.workload is None, holder.gpus, holder.pod.name))

    @cached_property
    def xids(self) -> list[Xid]:
        numbers = {gpu.uuid: str(gpu.index) for gpu in self.glance.gpus}
        events = XidEvent.objects.filter(cluster=self.node.cluster_id, node=self.node.name)[:MOST_XIDS]
        return [Xid(event, numbers.get(event.gpu, NOTHING), xid_words(event.xid)) for event in events]

    @property
    def troubles(self) -> list[tuple[Trouble, str, str, tuple[Step, ...]]]:
        """Return present and past troubles, newest first, each with its text, its hint and commands for admins."""
        # A part that fails on many nodes is one trouble, which names them.
        here = Q(node=self.node.name) | Q(node="", data__on__contains=[self.node.name])
        rows = Trouble.objects.filter(here, cluster=self.node.cluster_id)[:MOST_TROUBLES]
        return [
            (
                row,
                story.sentence(row.code, row.data),
                story.hint(row.code, row.data),
                steps(row.code, row.node),
            )
            for row in rows
        ]

    @property
    def tests(self) -> Iterable[Validation]:
        return validations.of_node(self.node.cluster_id, self.node.name)[:MOST_TESTS]


def load_lines(figures: dict[str, float]) -> list[tuple[str, str]]:
    names = (
        (_("CPU"), "cpu_percent", "%"),
        (_("memory"), "memory_percent", "%"),
        (_("fullest disk"), "disk_percent", "%"),
        (_("disk time"), "disk_time_percent", "%"),
        (_("reads from disks"), "disk_read_bytes", "/s"),
        (_("writes to disks"), "disk_write_bytes", "/s"),
        (_("network in"), "network_in_bytes", "/s"),
        (_("network out"), "network_out_bytes", "/s"),
    )
    errors = [figures[name] for name in ("network_in_errors", "network_out_errors") if name in figures]
    lines = [(label, _figure(figures[name], unit)) for label, name, unit in names if name in figures]
    return [*lines, *([(_("network errors"), f"{round(sum(errors), 1)}/s")] if errors else [])]


def ceph_lines(figures: dict[str, Any]) -> list[tuple[str, str]]:
    if not figures:
        return []
    checks = _(", ").join(figures["checks"]) or _("well")
    named = ((_("reads from Ceph"), "read_bytes", "/s"), (_("writes to Ceph"), "write_bytes", "/s"))
    full = [(_("Ceph used"), _figure(figures["used_percent"], "%"))] if "used_percent" in figures else []
    return [
        ("Ceph", checks),
        *full,
        *((label, _figure(figures[name], unit)) for label, name, unit in named if name in figures),
    ]


def _figure(value: float, unit: str) -> str:
    return f"{round(value)}%" if unit == "%" else f"{filesizeformat(value)}{unit}"


NOBODY: tuple[Workload | None, str] = (None, "")


def workloads_of(runs: set[UUID]) -> dict[UUID | None, tuple[Workload, str]]:
    """Return the workspace or job of each run, with the address of its page."""
    workspaces = Workspace.objects.filter(run__in=runs).select_related("owner", "tenant")
    found: dict[UUID | None, tuple[Workload, str]] = {
        row.run: (row, reverse("workspace", args=[row.pk])) for row in workspaces
    }
    attempts = Attempt.objects.filter(run__in=runs).select_related("part__job__owner", "part__job__tenant")
    for one in attempts:
        found[one.run] = one.part.job, reverse("job", args=[one.part.job_id])
    return found


def indexes(gpus: set[int]) -> str:
    return ", ".join(map(str, sorted(gpus)))


def gpu_line(gpu: Gpu) -> GpuLine:
    sample = gpu.sample
    facts: list[tuple[str, str]] = [
        (_("busy"), said(gpu.utilization_percent, "%")),
        (pgettext("a GPU", "memory"), f"{said(gpu.memory_used_mib, 'MiB')} / {said(gpu.memory_mib, 'MiB')}"),
        (_("temperature"), said(sample.get("temperature_celsius"), "°C")),
        (_("power"), said(sample.get("power_watts"), "W")),
        (_("ECC errors, not corrected"), _counts(sample, "ecc_uncorrected")),
        (_("ECC errors, corrected"), _counts(sample, "ecc_corrected")),
        (_("memory rows replaced"), _rows(sample)),
        (_("slowed by"), _(", ").join(sample.get("slowed_by", [])) or NOTHING),
    ]
    why = story.sentence(gpu.out_code, {"gpu": gpu.index, "node": gpu.node}) if gpu.out_code else ""
    return GpuLine(gpu, why, facts)


def _counts(sample: dict[str, Any], name: str) -> str:
    """Return the counts since the node's start and ever."""
    counts = {kind: sample.get(f"{name}_{kind}") for kind in ("since_boot", "ever")}
    if set(counts.values()) == {None}:
        return NOTHING
    figures = {kind: NOTHING if count is None else count for kind, count in counts.items()}
    return _("%(since_boot)s since its start, %(ever)s ever") % figures


def _rows(sample: dict[str, Any]) -> str:
    replaced = [sample.get(f"rows_remapped_{kind}") for kind in ("corrected", "uncorrected")]
    words = str(sum(filter(None, replaced))) if any(rows is not None for rows in replaced) else NOTHING
    if sample.get("row_remap_failed"):
        return _("%(count)s; one could not be replaced") % {"count": words}
    if sample.get("row_remap_pending"):
        return _("%(count)s; one more at the next reset") % {"count": words}
    return words


def xid_words(xid: int) -> str:
    """Return the meaning of an Xid for people, or that it is a note of the driver."""
    code = meaning_of(xid).code
    return story.sentence(code, {"xid": xid}) if code else _("A note of the driver's.")


def drivers_of(cluster_id: UUID) -> dict[str, str]:
    """Return the NVIDIA driver of each node, as its agent reported it last."""
    rows = AgentState.objects.filter(cluster=cluster_id).exclude(driver_version="")
    return dict(rows.values_list("node", "driver_version"))
