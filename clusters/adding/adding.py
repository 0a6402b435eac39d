"""Adding a cluster: look at it before it is saved, and fill in what it tells of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.access import Actor
from accounts.trail import audit
from clusters.api import Api
from clusters.connections import transport_to
from clusters.doctor import Check, Finding, Level, examine
from clusters.doctor.findings import as_json, from_json
from clusters.doctor.keeping import keep
from clusters.errands import running
from clusters.errors import ClusterRefused
from clusters.isolation import granting
from clusters.isolation.finding import look
from clusters.models import Cluster, Node
from clusters.nodes.inventory import NodeValues, node_values
from clusters.storage.classes import suggested
from clusters.transport import Objects

WITHIN_SECONDS = 20.0  # somebody waits for the page


@dataclass(frozen=True)
class Seen:
    """Findings of doctor about a cluster that is not saved yet, and its nodes."""

    findings: Sequence[Finding]
    nodes: Sequence[NodeValues]

    def failures(self, *checks: Check) -> list[Finding]:
        return [
            one for one in self.findings if one.level == Level.FAIL and (not checks or one.check in checks)
        ]


def look_at(cluster: Cluster) -> Seen:
    """Fill in networks, storage classes and way of access as the cluster tells them.

    Writes nothing. Raises ClusterError if the cluster cannot be reached. The worker looks if this is web.
    """
    told = running.ask("clusters.look_at", fields=_fields(cluster))
    for name, value in told["fields"].items():
        setattr(cluster, name, value)
    findings = from_json(told["findings"])
    cluster.networks_found_at = timezone.now()
    keep(cluster, findings)
    return Seen(findings, [NodeValues(**node) for node in told["nodes"]])


def _fields(cluster: Cluster) -> dict[str, Any]:
    """Return what an unsaved cluster is made of, as JSON. Its kubeconfig is encrypted."""
    values = {field.attname: getattr(cluster, field.attname) for field in Cluster._meta.concrete_fields}
    return {
        name: str(value) if name == "id" else value
        for name, value in values.items()
        if not isinstance(value, datetime) and value is not None
    }


def look_for(*, fields: dict[str, Any]) -> dict[str, Any]:
    """Do the errand of `look_at`."""
    cluster = Cluster(**fields)
    api = Api(transport_to(cluster, within_seconds=WITHIN_SECONDS))
    api.version()
    cluster.found_networks, cluster.secret_accounts = look(api), granting.accounts(cluster, api)
    cluster.home_class, cluster.disk_class = suggested(_permitted(api, "StorageClass"))
    nodes = [node_values(body) for body in _permitted(api, "Node")]
    findings = examine(cluster)
    if settings.WORKSPACE_DOMAIN and not _gives_addresses(findings):
        cluster.exposure = Cluster.Exposure.PORTAL
        findings = examine(cluster)
    found = ("found_networks", "home_class", "disk_class", "exposure", "secret_accounts")
    return {
        "fields": {name: getattr(cluster, name) for name in found},
        "findings": as_json(findings),
        "nodes": [asdict(node) for node in nodes],
    }


def _permitted(api: Api, kind: str) -> Objects:
    """Return the objects; none if Berth may not list them, which doctor names."""
    try:
        return api.list(kind)
    except ClusterRefused as refused:
        if refused.status == 403:
            return []
        raise


def _gives_addresses(findings: Sequence[Finding]) -> bool:
    return all(finding.level == Level.OK for finding in findings if finding.check == Check.ADDRESSES)


def add(actor: Actor, cluster: Cluster, seen: Seen) -> None:
    """Save a new cluster with its nodes. The watch begins within seconds, and keeps them."""
    actor.require_admin()
    with transaction.atomic():
        cluster.save(force_insert=True)
        rows = [Node(cluster=cluster, **vars(node)) for node in seen.nodes]
        Node.objects.bulk_create(rows, ignore_conflicts=True)
        audit.record(actor, "cluster.create", target=cluster, data={"name": cluster.name})
