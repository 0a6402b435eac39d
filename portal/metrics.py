"""Metrics for Prometheus: read from rows at the scrape, and the same from every process.

Objects are counted in their tables. Times and errors are counted by the processes where they happen, and added to rows
(vitals). A process's gauges come with its sign of life, and end with it.

The metrics hold no tenant, person or name. Counts are private all the same: outside a trial only a Prometheus with
BERTH_METRICS_TOKEN may ask.
"""

from __future__ import annotations

import hmac
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from django.conf import settings
from django.db.models import Case, Count, Min, Q, Sum, Value, When
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.models import OrmQ
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

import clusters.measures
import monitoring.measures
import workloads.live.sockets
import workloads.logs.measures
import workspaces.measures
from accounts.errors import NotAllowed, NotSignedIn, Refusal
from accounts.notices.models import Notice
from accounts.rest import rates
from accounts.rest.errors import json_response
from clusters.models import Gpu, Node, UnknownCause, Watcher
from jobs.models import OVER, Job
from jobs.models import Phase as JobPhase
from monitoring.health.rules import silent
from monitoring.models import AgentState, Finding, Trouble, What
from portal.health import parts_that_matter
from quotas.models import Claim, of_all_members
from vitals.clock import is_near_now
from vitals.figures import INFINITE, Counter, Histogram
from vitals.models import Figure, Process
from vitals.pulse import SILENT_AFTER, heard_since
from workspaces.models import Phase, Workspace

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HISTOGRAMS = (
    workspaces.measures.STEP,
    workspaces.measures.START,
    workspaces.measures.LOOK,
    clusters.measures.LAG,
)
COUNTERS = (
    workspaces.measures.LOOK_ERRORS,
    clusters.measures.SKIPPED,
    monitoring.measures.REPORTS,
    monitoring.measures.VALIDATIONS,
    workloads.logs.measures.LINES,
    workloads.logs.measures.BYTES,
    workloads.logs.measures.DROPPED,
)
GAUGES = (workloads.live.sockets.SOCKETS, workloads.logs.measures.FOLLOWED)


def metrics(request: HttpRequest) -> HttpResponse:
    try:
        _require_token(request.headers.get("Authorization", ""))
    except Refusal as refusal:
        return json_response(refusal)
    return HttpResponse(exposition(), content_type=CONTENT_TYPE)


def exposition() -> bytes:
    """Return all figures in Prometheus' text format. They name no tenant and no person."""
    registry = CollectorRegistry(auto_describe=False)
    for collector in (Rows(), Health(), Counted(), Processes()):
        registry.register(collector)
    return generate_latest(registry)


def _require_token(header: str) -> None:
    """Raise NotSignedIn without BERTH_METRICS_TOKEN, NotAllowed if none is set. A trial without one is open."""
    if not settings.METRICS_TOKEN:
        if settings.TRIAL:
            return
        raise NotAllowed(
            "metrics_closed",
            _("Metrics are closed: this Berth has no token for them."),
            _("An operator sets BERTH_METRICS_TOKEN, and the same token in Prometheus."),
        )
    kind, _space, secret = header.partition(" ")
    known = hmac.compare_digest(secret.strip().encode(), settings.METRICS_TOKEN.encode())
    if kind.lower() != "bearer" or not known:
        rates.count_stranger()
        raise NotSignedIn(
            "token_refused",
            _("This is not the token for metrics."),
            _("Send “Authorization: Bearer …” with BERTH_METRICS_TOKEN of this Berth."),
        )


class Rows(Collector):
    """Metrics from tables, each read once."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        yield self._workspaces()
        yield self._jobs()
        yield from self._claims()
        yield self._watchers()
        yield self._mails()
        yield from self._tasks()
        yield self._drift()
        unexplained = UnknownCause.objects.aggregate(total=Sum("count"))["total"] or 0
        yield GaugeMetricFamily(
            "berth_unexplained_messages", "Messages of clusters that no rule explains.", value=unexplained
        )

    def _workspaces(self) -> GaugeMetricFamily:
        rows = Workspace.objects.filter(deleted_at__isnull=True).order_by()
        there = [phase for phase in Phase.values if phase != Phase.DELETED]
        counted = dict.fromkeys(there, 0) | dict(rows.values_list("phase").annotate(Count("pk")))
        return _gauge("berth_workspaces", "Workspaces that are not deleted.", ["phase"], counted.items())

    def _jobs(self) -> GaugeMetricFamily:
        """Jobs that are not over: those that are stay in the table for long."""
        rows = Job.objects.filter(ended_at=None, deleted_at=None).order_by()
        there = [phase for phase in JobPhase.values if phase not in OVER]
        counted = dict.fromkeys(there, 0) | dict(rows.values_list("phase").annotate(Count("pk")))
        return _gauge("berth_jobs", "Jobs that are not over.", ["phase"], counted.items())

    def _claims(self) -> Iterable[GaugeMetricFamily]:
        count = GaugeMetricFamily("berth_claims", "Claims that wait or hold.", labels=["pool", "state"])
        gpus = GaugeMetricFamily("berth_gpus_held", "GPUs that admitted claims hold.", labels=["pool"])
        oldest = GaugeMetricFamily(
            "berth_queue_oldest_seconds", "How long the first of the queue has waited.", labels=["pool"]
        )
        live = Claim.objects.exclude(state=Claim.State.RELEASED).order_by()
        grouped = live.values("pool__slug", "pool__units_per_gpu", "state").annotate(
            number=Count("pk"), units=Sum(of_all_members("units")), since=Min("created_at")
        )
        for row in grouped:
            count.add_metric([row["pool__slug"], row["state"]], row["number"])
            if row["state"] == Claim.State.ADMITTED:
                gpus.add_metric([row["pool__slug"]], row["units"] / row["pool__units_per_gpu"])
            else:
                oldest.add_metric([row["pool__slug"]], (timezone.now() - row["since"]).total_seconds())
        return count, gpus, oldest

    def _mails(self) -> GaugeMetricFamily:
        states = (Notice.Mail.WAITING, Notice.Mail.GIVEN_UP)
        counted = [(state, Notice.objects.filter(mail=state).count()) for state in states]
        return _gauge("berth_mails", "Mails that wait or were given up.", ["state"], counted)

    def _tasks(self) -> Iterable[GaugeMetricFamily]:
        """Count waiting and taken tasks: a taken one has a lock in the future."""
        waiting = OrmQ.objects.filter(lock__lte=Now()).aggregate(
            number=Count("pk"), since=Now() - Min("lock")
        )
        counted = [("waiting", waiting["number"]), ("taken", OrmQ.objects.filter(lock__gt=Now()).count())]
        count = _gauge("berth_tasks", "Tasks that wait, or that a worker has taken.", ["state"], counted)
        oldest = waiting["since"].total_seconds() if waiting["since"] else 0
        return count, GaugeMetricFamily(
            "berth_tasks_oldest_seconds", "How long the first task has waited for a worker.", value=oldest
        )

    def _drift(self) -> GaugeMetricFamily:
        rows = Finding.objects.open().order_by()
        counted = dict.fromkeys(What.values, 0) | dict(rows.values_list("what").annotate(Count("pk")))
        words = "Where a cluster and the rows do not agree."
        return _gauge("berth_drift_findings", words, ["what"], counted.items())

    def _watchers(self) -> GaugeMetricFamily:
        now = timezone.now()
        rows = Watcher.objects.values_list("cluster__slug", "kind", "seen_at")
        silent_for = [(cluster, kind, (now - seen_at).total_seconds()) for cluster, kind, seen_at in rows]
        words = "Since a watch last heard from its cluster."
        return _gauge("berth_watch_silent_seconds", words, ["cluster", "kind"], silent_for)


class Health(Collector):
    """Nodes, GPUs and their agents, by cluster: each table once."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        yield self._nodes()
        yield self._gpus()
        yield self._agents()
        yield self._troubles()

    def _nodes(self) -> GaugeMetricFamily:
        state = Case(
            When(ready=False, then=Value("not_ready")),
            When(~Q(out_code=""), then=Value("out")),
            When(unschedulable=True, then=Value("cordoned")),
            default=Value("well"),
        )
        rows = Node.objects.order_by().values_list("cluster__slug", state).annotate(Count("pk"))
        return _gauge("berth_nodes", "Nodes of clusters.", ["cluster", "state"], rows)

    def _gpus(self) -> GaugeMetricFamily:
        state = Case(
            When(~Q(out_code=""), then=Value("out")),
            When(~Q(held_by=[]), then=Value("held")),
            default=Value("free"),
        )
        rows = Gpu.objects.order_by().values_list("cluster__slug", "name", state).annotate(Count("pk"))
        return _gauge("berth_gpus", "GPUs as agents told them last.", ["cluster", "product", "state"], rows)

    def _agents(self) -> GaugeMetricFamily:
        is_silent = silent(timezone.now(), heard_since("web"))
        state = Case(When(is_silent, then=Value("silent")), default=Value("heard"))
        rows = AgentState.objects.order_by().values_list("cluster__slug", state).annotate(Count("pk"))
        return _gauge("berth_agents", "Nodes whose agent reports, or did.", ["cluster", "state"], rows)

    def _troubles(self) -> GaugeMetricFamily:
        rows = Trouble.objects.filter(ended_at__isnull=True).order_by()
        grouped = rows.values_list("cluster__slug", "about", "code").annotate(Count("pk"))
        return _gauge("berth_troubles", "What is wrong now.", ["cluster", "about", "code"], grouped)


class Counted(Collector):
    """Totals of what all processes have counted."""

    def collect(self) -> Iterable[Metric]:
        by_name: dict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
        for name, labels, value in Figure.objects.values_list("name", "labels", "value"):
            by_name[name].append((json.loads(labels), value))
        for counter in COUNTERS:
            yield _counter(counter, by_name[counter.name])
        for histogram in HISTOGRAMS:
            buckets, sums = by_name[f"{histogram.name}_bucket"], by_name[f"{histogram.name}_sum"]
            yield _histogram(histogram, buckets, sums)


class Processes(Collector):
    """Processes heard recently, and their gauges."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        recent = Process.objects.filter(is_near_now("seen_at", Now(), SILENT_AFTER))
        heard = list(recent.values_list("part", "gauges"))
        parts = ("web", *parts_that_matter())
        counted = [(part, sum(each == part for each, _ in heard)) for part in parts]
        yield _gauge("berth_processes", "Processes that were heard of late.", ["part"], counted)
        for gauge in GAUGES:
            value = sum(gauges.get(gauge.name, 0) for _, gauges in heard)
            yield GaugeMetricFamily(gauge.name, gauge.words, value=value)


def _gauge(
    name: str, words: str, labels: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> GaugeMetricFamily:
    """Return a gauge of rows that hold the labels' values and, last, the number."""
    family = GaugeMetricFamily(name, words, labels=labels)
    for *values, figure in rows:
        family.add_metric(values, figure)
    return family


def _counter(counter: Counter, samples: list[tuple[dict[str, str], float]]) -> CounterMetricFamily:
    family = CounterMetricFamily(counter.name, counter.words, labels=counter.labels)
    counted = {tuple(labels[name] for name in counter.labels): value for labels, value in samples}
    for values, value in (dict.fromkeys(counter.known, 0.0) | counted).items():
        family.add_metric(values, value)
    return family


def _histogram(
    histogram: Histogram,
    buckets: list[tuple[dict[str, str], float]],
    sums: list[tuple[dict[str, str], float]],
) -> HistogramMetricFamily:
    """Return a histogram: rows count each bucket alone, Prometheus wants each with all lower ones."""
    family = HistogramMetricFamily(histogram.name, histogram.words, labels=histogram.labels)
    every = [f"{bound:g}" for bound in histogram.bounds] + [INFINITE]
    fell: dict[tuple[str, ...], dict[str, float]] = defaultdict(lambda: dict.fromkeys(every, 0))
    for labels, value in buckets:
        fell[tuple(labels[name] for name in histogram.labels)][labels["le"]] = value
    for labels, total in sums:
        key = tuple(labels[name] for name in histogram.labels)
        here = sorted(fell[key].items(), key=lambda bucket: float(bucket[0]))
        counts = accumulate(count for _, count in here)
        family.add_metric(
            key, [(bound, count) for (bound, _), count in zip(here, counts, strict=True)], total
        )
    return family
