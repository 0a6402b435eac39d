"""What Prometheus may know: read from rows at the scrape, the same from whichever process answers.

Counts are those of the rows themselves. Times and errors were counted by the processes where they happened and added
to rows (vitals); what a process has open comes with its sign of life, and goes with it.

No tenant, person or name is in it: anybody who reaches the portal may ask.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from itertools import accumulate

from django.db.models import Count, Min, Sum
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django_q.models import OrmQ
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

import clusters.measures
import workspaces.measures
from accounts.notices.models import Notice
from clusters.models import UnknownCause, Watcher
from monitoring.models import Finding, What
from portal.health import parts_that_matter
from quotas.models import Claim
from vitals.clock import about
from vitals.figures import INFINITE, Counter, Histogram
from vitals.models import Figure, Process
from vitals.pulse import SILENT_AFTER_SECONDS
from workspaces.models import Phase, Workspace

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HISTOGRAMS = (
    workspaces.measures.STEP,
    workspaces.measures.START,
    workspaces.measures.LOOK,
    clusters.measures.LAG,
)
COUNTERS = (workspaces.measures.LOOK_ERRORS,)
GAUGES = (workspaces.measures.SOCKETS,)


def metrics(request: HttpRequest) -> HttpResponse:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Rows())
    registry.register(Counted())
    registry.register(Processes())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE)


class Rows(Collector):
    """Reads the tables, each once."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        yield self._workspaces()
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
        family = GaugeMetricFamily("berth_workspaces", "Workspaces that are not deleted.", labels=["phase"])
        rows = Workspace.objects.filter(deleted_at__isnull=True).order_by()
        counted = dict(rows.values_list("phase").annotate(Count("pk")))
        for phase in Phase.values:
            family.add_metric([phase], counted.get(phase, 0))
        return family

    def _claims(self) -> Iterable[GaugeMetricFamily]:
        count = GaugeMetricFamily("berth_claims", "Claims that wait or hold.", labels=["pool", "state"])
        gpus = GaugeMetricFamily("berth_gpus_held", "GPUs that admitted claims hold.", labels=["pool"])
        oldest = GaugeMetricFamily(
            "berth_queue_oldest_seconds", "How long the first of the queue has waited.", labels=["pool"]
        )
        live = Claim.objects.exclude(state=Claim.State.RELEASED).order_by()
        grouped = live.values("pool__slug", "pool__units_per_gpu", "state").annotate(
            number=Count("pk"), units=Sum("units"), since=Min("created_at")
        )
        for row in grouped:
            count.add_metric([row["pool__slug"], row["state"]], row["number"])
            if row["state"] == Claim.State.ADMITTED:
                gpus.add_metric([row["pool__slug"]], row["units"] / row["pool__units_per_gpu"])
            else:
                oldest.add_metric([row["pool__slug"]], (timezone.now() - row["since"]).total_seconds())
        return count, gpus, oldest

    def _mails(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily("berth_mails", "Mails that wait or were given up.", labels=["state"])
        for state in (Notice.Mail.WAITING, Notice.Mail.GIVEN_UP):
            family.add_metric([state], Notice.objects.filter(mail=state).count())
        return family

    def _tasks(self) -> Iterable[GaugeMetricFamily]:
        """A task that a worker has taken is locked for a while to come."""
        waiting = OrmQ.objects.filter(lock__lte=Now()).aggregate(
            number=Count("pk"), since=Now() - Min("lock")
        )
        count = GaugeMetricFamily(
            "berth_tasks", "Tasks that wait, or that a worker has taken.", labels=["state"]
        )
        count.add_metric(["waiting"], waiting["number"])
        count.add_metric(["taken"], OrmQ.objects.filter(lock__gt=Now()).count())
        oldest = waiting["since"].total_seconds() if waiting["since"] else 0
        return count, GaugeMetricFamily(
            "berth_tasks_oldest_seconds", "How long the first task has waited for a worker.", value=oldest
        )

    def _drift(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "berth_drift_findings", "Where a cluster and the rows do not agree.", labels=["what"]
        )
        counted = dict(Finding.objects.open().order_by().values_list("what").annotate(Count("pk")))
        for what in What.values:
            family.add_metric([what], counted.get(what, 0))
        return family

    def _watchers(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "berth_watch_silent_seconds",
            "Since a watch last heard from its cluster.",
            labels=["cluster", "kind"],
        )
        for cluster, kind, seen_at in Watcher.objects.values_list("cluster__slug", "kind", "seen_at"):
            family.add_metric([cluster, kind], (timezone.now() - seen_at).total_seconds())
        return family


class Counted(Collector):
    """What all processes have counted since the first."""

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
    """Who was heard of late, and what they have open."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        span = timedelta(seconds=SILENT_AFTER_SECONDS)
        recent = Process.objects.filter(about("seen_at", Now(), span))
        heard = list(recent.values_list("part", "gauges"))
        count = GaugeMetricFamily("berth_processes", "Processes that were heard of late.", labels=["part"])
        for part in ("web", *parts_that_matter()):
            count.add_metric([part], sum(each == part for each, _ in heard))
        yield count
        for gauge in GAUGES:
            value = sum(gauges.get(gauge.name, 0) for _, gauges in heard)
            yield GaugeMetricFamily(gauge.name, gauge.words, value=value)


def _counter(counter: Counter, samples: list[tuple[dict[str, str], float]]) -> CounterMetricFamily:
    family = CounterMetricFamily(counter.name, counter.words, labels=counter.labels)
    for labels, value in samples:
        family.add_metric([labels[name] for name in counter.labels], value)
    return family


def _histogram(
    histogram: Histogram,
    buckets: list[tuple[dict[str, str], float]],
    sums: list[tuple[dict[str, str], float]],
) -> HistogramMetricFamily:
    """Rows hold what fell into each bucket alone; Prometheus wants what fell into it or one below."""
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
