"""Problems that have to last before they are troubles. What was seen is kept in rows, so a restart forgets nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from clusters.models import Cluster
from monitoring.health.rules import About, Verdict
from monitoring.models import Suspicion
from monitoring.parts.load import LASTS

# An update of a DaemonSet or of nodes takes its time.
UPDATES_TAKE = timedelta(minutes=30)
BY_CODE = {
    "part_missing": timedelta(minutes=5),
    "part_absent": timedelta(minutes=5),
    "part_versions_differ": UPDATES_TAKE,
    "node_versions_differ": UPDATES_TAKE,
    "versions_unfit": timedelta(minutes=5),
    "node_network_faulty": timedelta(minutes=5),
}
CEPH_WARNS = timedelta(minutes=3)


def needed(verdict: Verdict) -> timedelta:
    """Return how long the problem has to last."""
    if verdict.code == "node_overloaded":
        return LASTS[verdict.data["what"]]
    if verdict.code == "ceph_unwell":
        return timedelta(0) if verdict.data["status"] == "error" else CEPH_WARNS
    return BY_CODE.get(verdict.code, timedelta(0))


def key_of(verdict: Verdict) -> str:
    return f"{verdict.about} {verdict.code} {verdict.subject}"[:600]


def lasting(
    cluster: Cluster, about: Collection[About], found: Iterable[Verdict], now: datetime
) -> list[Verdict]:
    """Return what has lasted long enough. Forget what is over."""
    seen = {key_of(verdict): verdict for verdict in found}
    rows = {row.key: row for row in Suspicion.objects.filter(cluster=cluster) if _about(row.key) in about}
    Suspicion.objects.filter(pk__in=[row.pk for key, row in rows.items() if key not in seen]).delete()
    new = [Suspicion(cluster=cluster, key=key, since=now) for key in seen if key not in rows]
    Suspicion.objects.bulk_create(new, ignore_conflicts=True)
    return [
        verdict
        for key, verdict in seen.items()
        if now - (rows[key].since if key in rows else now) >= needed(verdict)
    ]


def _about(key: str) -> str:
    return key.partition(" ")[0]
