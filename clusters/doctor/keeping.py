"""Results of doctor that are kept: each cluster is examined once an hour, and its row says how much is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import Tenant
from clusters.doctor.examination import examine
from clusters.doctor.findings import Check, Finding, Level, as_json, from_json
from clusters.errands import running
from clusters.errors import ClusterUnavailable
from clusters.models import Cluster

EVERY = timedelta(hours=1)
MOST_NAMESPACES = 3  # namespaces in which a missing right is looked for


def keep(cluster: Cluster, findings: Sequence[Finding]) -> None:
    """Set on the cluster, unsaved, how many failures each check has."""
    counts = Counter(finding.check for finding in findings if finding.level == Level.FAIL)
    cluster.doctor_failures = {str(check): count for check, count in counts.items() if check}
    cluster.doctor_at = timezone.now()


def namespaces() -> list[str]:
    """Return namespaces of tenants, in which doctor looks for rights that are missing elsewhere."""
    return [tenant.namespace for tenant in Tenant.objects.all()[:MOST_NAMESPACES]]


def examined(cluster: Cluster, within: Sequence[str] = ()) -> list[Finding]:
    """Return what `examine` finds, where an account of the cluster is at hand: a page of web has none."""
    return from_json(running.ask("clusters.examine", cluster_id=str(cluster.pk), within=list(within)))


def unexamined(error: ClusterUnavailable) -> list[Finding]:
    """Return the one finding about a cluster that no process of Berth could examine."""
    return [Finding(Level.FAIL, str(error), check=Check.CONNECTION)]


def found_now(cluster: Cluster) -> list[Finding]:
    """Return what an examination finds now, and keep it.

    If no process of Berth could examine it, that is the one finding, and the row keeps what was found before.
    """
    try:
        findings = examined(cluster, namespaces())
    except ClusterUnavailable as error:
        return unexamined(error)
    save(cluster, findings)
    return findings


def examine_for(*, cluster_id: str, within: list[str]) -> list[dict[str, Any]]:
    return as_json(examine(Cluster.objects.get(pk=cluster_id), within))


def is_due(cluster: Cluster) -> bool:
    return cluster.doctor_at is None or timezone.now() - cluster.doctor_at > EVERY


def examine_if_due(cluster: Cluster) -> None:
    """Examine a cluster that answers, if that is due, and keep the result in its row."""
    if cluster.unreachable_since is None and is_due(cluster):
        save(cluster, examine(cluster, namespaces()))


def save(cluster: Cluster, findings: Sequence[Finding]) -> None:
    keep(cluster, findings)
    Cluster.objects.filter(pk=cluster.pk).update(
        doctor_at=cluster.doctor_at, doctor_failures=cluster.doctor_failures
    )
