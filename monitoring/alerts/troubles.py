"""Open troubles as firings, and how grave each is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from uuid import UUID

from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone

from accounts.models import Tenant
from clusters.models import Node
from monitoring.alerts.firing import Firing, key_of
from monitoring.models import Severity, Trouble
from quotas.models import Pool
from quotas.pools import selection

# Codes whose severity does not follow from what they take out of use.
SEVERITIES: Mapping[str, Severity] = {
    "addresses_used_up": Severity.CRITICAL,
    "addresses_nearly_used_up": Severity.WARNING,
    "node_drains": Severity.INFO,  # an admin asked for it
    "gpu_program_fault": Severity.INFO,  # a person's own program did it; they are told
    "part_absent": Severity.CRITICAL,  # nothing starts in a pool
    "node_versions_differ": Severity.INFO,  # may be on purpose
}


def severity(code: str, about: str, *, takes_out: bool) -> Severity:
    """Return how grave a trouble is. One that takes a node or a GPU out of use is critical, unless told otherwise."""
    if code in SEVERITIES:
        return SEVERITIES[code]
    is_hardware = about in (Trouble.About.CLUSTER, Trouble.About.NODE, Trouble.About.GPU)
    return Severity.CRITICAL if takes_out and is_hardware else Severity.WARNING


# A trouble fires at least so long, so that one that is over before the next pass is told and shown, too.
HELD = timedelta(seconds=20)


def firings() -> Iterable[Firing]:
    recent = Q(ended_at=None) | Q(ended_at__gt=timezone.now() - HELD)
    rows = list(Trouble.objects.filter(recent).order_by(F("ended_at").asc(nulls_last=True), "since"))
    pools = pools_of_nodes({(row.cluster_id, row.node) for row in rows if row.node})
    tenants = tenants_of({row.subject for row in rows if row.about == Trouble.About.VOLUME})
    for row in rows:
        subject = "" if row.subject == row.node else row.subject
        yield Firing(
            key=key_of(str(row.cluster_id), row.node, row.about, row.subject, row.code),
            code=row.code,
            data=row.data,
            severity=severity(row.code, row.about, takes_out=row.takes_out),
            since=row.since,
            cluster_id=row.cluster_id,
            node=row.node,
            name=subject,
            pool_ids=pools.get((row.cluster_id, row.node), ()),
            tenant_id=tenants.get(row.subject) if row.about == Trouble.About.VOLUME else None,
            link=reverse("admin:monitoring_trouble_change", args=[row.pk]),
        )


def pools_of_nodes(nodes: Collection[tuple[UUID, str]]) -> dict[tuple[UUID, str], tuple[UUID, ...]]:
    """Return the pools that each node belongs to."""
    found: defaultdict[tuple[UUID, str], list[UUID]] = defaultdict(list)
    if nodes:
        clusters = {cluster for cluster, _node in nodes}
        rows = Node.objects.filter(cluster__in=clusters, name__in={name for _cluster, name in nodes})
        its = list(rows)
        for pool in Pool.objects.filter(cluster__in=clusters).order_by("pk"):
            for node in selection.each_member(pool, its):
                found[node.cluster_id, node.name].append(pool.pk)
    return {key: tuple(ids) for key, ids in found.items()}


def tenants_of(subjects: Collection[str]) -> dict[str, UUID]:
    """Return the tenant of each namespace/name that lies in a tenant's namespace."""
    if not subjects:
        return {}
    of_namespace = {tenant.namespace: tenant.pk for tenant in Tenant.objects.all()}
    found = {subject: of_namespace.get(subject.partition("/")[0]) for subject in subjects}
    return {subject: tenant for subject, tenant in found.items() if tenant}
