"""What Prometheus may know: counts read from rows at the scrape, the same from whichever process answers.

No tenant, person or name is in it: anybody who reaches the portal may ask.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Count, Min, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from accounts.notices.models import Notice
from clusters.models import UnknownCause, Watcher
from quotas.models import Claim
from workspaces.models import Phase, Workspace

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics(request: HttpRequest) -> HttpResponse:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Rows())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE)


class Rows(Collector):
    """Reads the tables, each once."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        yield self._workspaces()
        yield from self._claims()
        yield self._watchers()
        yield self._mails()
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

    def _watchers(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "berth_watch_silent_seconds",
            "Since a watch last heard from its cluster.",
            labels=["cluster", "kind"],
        )
        for cluster, kind, seen_at in Watcher.objects.values_list("cluster__slug", "kind", "seen_at"):
            family.add_metric([cluster, kind], (timezone.now() - seen_at).total_seconds())
        return family
