"""Supplies of workspaces that are nearly used up: addresses of the load balancer, space on volumes. Once a minute.

Only a node's kubelet knows how full a volume is. Reading it there needs the right `nodes/proxy`, which is as good as
root on every node, so Berth does not request it. A Prometheus that the cluster names has the figures already
(`kubelet_volume_stats_*`); without one, a full volume is reported when a program finds it full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from clusters.address_pools import AddressPool, pools
from clusters.connections import api_for
from clusters.errors import ClusterError
from clusters.models import Cluster
from clusters.watch.ticks import is_due
from monitoring import enqueue
from monitoring.dcgm.prometheus import NoAnswer, Prometheus, Series
from monitoring.health import judging
from monitoring.health.rules import About, Verdict
from monitoring.models import Trouble

EVERY_SECONDS = 60
FULL_PERCENT = 90
LONGEST_CLAIM = 63 + 1 + 253  # namespace/name
MINUTES, WITHIN_SECONDS = 5, 10.0
AVAILABLE, CAPACITY = "kubelet_volume_stats_available_bytes", "kubelet_volume_stats_capacity_bytes"


def on_tick(**_: object) -> None:
    if is_due(EVERY_SECONDS):
        for cluster_id in Cluster.objects.filter(unreachable_since=None).values_list("pk", flat=True):
            enqueue.look_at_supplies(cluster_id)


def look(cluster_id: UUID) -> None:
    """Check the supplies of a cluster. A source that does not answer ends no trouble."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        return
    try:
        if cluster.exposure == Cluster.Exposure.LOAD_BALANCER:
            write(cluster, About.ADDRESSES, of_pools(pools(api_for(cluster))))
        if cluster.prometheus_url:
            write(cluster, About.VOLUME, of_volumes(*asked(cluster)))
    except (ClusterError, NoAnswer):
        return


def of_pools(found: Iterable[AddressPool]) -> Iterator[Verdict]:
    for pool in found:
        data = {"free": pool.free, "total": pool.total}
        if pool.free == 0:
            yield Verdict(About.ADDRESSES, pool.name, "addresses_used_up", data=data)
        elif pool.is_nearly_used_up:
            yield Verdict(About.ADDRESSES, pool.name, "addresses_nearly_used_up", data=data)


def asked(cluster: Cluster) -> tuple[list[Series], list[Series]]:
    url, token_path = cluster.prometheus_url, cluster.prometheus_token_path
    with closing(Prometheus(url, token_path, within_seconds=WITHIN_SECONDS)) as prometheus:
        return prometheus.series(AVAILABLE, minutes=MINUTES), prometheus.series(CAPACITY, minutes=MINUTES)


def of_volumes(available: Iterable[Series], capacity: Iterable[Series]) -> Iterator[Verdict]:
    """Yield nearly full PVCs in tenants' namespaces. Percent has three steps, or it would change all the time."""
    sizes = {claim_of(series): series.samples[-1][1] for series in capacity if series.samples}
    for series in available:
        claim = claim_of(series)
        size = sizes.get(claim, 0)
        is_tenants = claim.startswith("berth-") and len(claim) <= LONGEST_CLAIM
        if not series.samples or size <= 0 or not is_tenants:
            continue
        percent = 100 - 100 * series.samples[-1][1] / size
        if percent >= FULL_PERCENT:
            data = {"percent": FULL_PERCENT if percent < 95 else 95 if percent < 99 else 99}
            yield Verdict(About.VOLUME, claim, "volume_nearly_full", data=data)


def claim_of(series: Series) -> str:
    """Return namespace/name. Prometheus renames the label if it has one of that name itself."""
    labels = series.labels
    namespace = labels.get("exported_namespace") or labels.get("namespace", "")
    return f"{namespace}/{labels.get('persistentvolumeclaim', '')}"


def write(cluster: Cluster, about: About, found: Iterable[Verdict]) -> None:
    """Write troubles of this kind without a node: problems of mounting volumes belong to their nodes."""
    with transaction.atomic():
        judging.lock(cluster.pk, "")
        standing = Trouble.objects.filter(cluster=cluster, about=about, node="", ended_at=None)
        if judging.write(cluster.pk, "", standing, found, timezone.now()):
            enqueue.tell_of_health(cluster.pk)
