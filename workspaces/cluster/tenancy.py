"""Namespace of a tenant and its limits, as Kubernetes objects. Pure: from rows to dicts.

ResourceQuota and LimitRange are a backstop behind Berth's own queue; NetworkPolicies are made from the
cluster's settings (its pod, service and API networks).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from accounts.models import Tenant
from clusters import labels
from clusters.models import Cluster
from clusters.own_place import own_namespace

from .digest import HASH, digest_of

METADATA_ADDRESSES = ["169.254.169.254/32", "fd00:ec2::254/128"]
SERVICE_ACCOUNT = "workspace"
JUPYTER_PORT = 8888
SSH_PORT = 2222


def tenant_labels(tenant: Tenant, instance: UUID) -> dict[str, str]:
    return {labels.MANAGED_BY: "berth", labels.INSTANCE: str(instance), labels.TENANT: tenant.slug}


def objects(
    tenant: Tenant, cluster: Cluster, instance: UUID, ceilings: dict[str, int]
) -> list[dict[str, Any]]:
    """Everything a tenant needs before its first pod, namespace first. `ceilings`: keys of a ResourceQuota."""
    common = tenant_labels(tenant, instance)

    def named(api: str, kind: str, name: str, **body: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": tenant.namespace, "labels": common}
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}

    inside = [
        named("v1", "ServiceAccount", SERVICE_ACCOUNT, automountServiceAccountToken=False),
        named("v1", "LimitRange", "berth", spec={"limits": [DEFAULT_LIMITS]}),
        named("networking.k8s.io/v1", "NetworkPolicy", "berth", spec=network_policy(cluster)),
    ]
    if ceilings:
        hard = {key: str(amount) for key, amount in sorted(ceilings.items())}
        inside.append(named("v1", "ResourceQuota", "berth", spec={"hard": hard}))
    namespace: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": tenant.namespace,
            "labels": common
            | {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in POD_SECURITY_MODES},
        },
    }
    namespace["metadata"]["annotations"] = {HASH: digest_of([namespace, *inside])}
    return [namespace, *inside]


POD_SECURITY_MODES = ("enforce", "warn", "audit")
# For containers that set nothing; Berth's own set everything.
DEFAULT_LIMITS = {
    "type": "Container",
    "default": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"},
    "defaultRequest": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "100Mi"},
}


def network_policy(cluster: Cluster) -> dict[str, Any]:
    """Ingress: workspace ports, from outside the pod network and from Berth. Egress: DNS, and all but the cluster."""
    forbidden = [*cluster.pod_cidrs, *cluster.service_cidrs, *cluster.api_cidrs, *cluster.denied_cidrs]
    dns = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    ports = [{"protocol": "TCP", "port": port} for port in (JUPYTER_PORT, SSH_PORT)]
    return {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": [*everywhere_but(cluster.pod_cidrs), *berths_own_pods(cluster)], "ports": ports}
        ],
        "egress": [{"ports": dns}, {"to": everywhere_but([*forbidden, *METADATA_ADDRESSES])}],
    }


def berths_own_pods(cluster: Cluster) -> list[dict[str, Any]]:
    """Peers for Berth's gateway and SSH jump if they run in this cluster. Nobody else can use that namespace's name."""
    if cluster.connection != Cluster.Connection.IN_CLUSTER:
        return []
    return [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": own_namespace()}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "berth"}},
        }
    ]


def everywhere_but(cidrs: list[str]) -> list[dict[str, Any]]:
    """Peers for all addresses of both families, less the given networks."""
    peers = []
    for whole in ("0.0.0.0/0", "::/0"):
        block: dict[str, Any] = {"cidr": whole}
        if excepted := sorted({cidr for cidr in cidrs if (":" in cidr) == (":" in whole)}):
            block["except"] = excepted
        peers.append({"ipBlock": block})
    return peers
