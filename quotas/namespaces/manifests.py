"""Namespace of a tenant and its limits, as Kubernetes objects. Pure: from rows to dicts.

ResourceQuota and LimitRange are a backstop behind Berth's own queue; NetworkPolicies are made from the
cluster's networks, an admin's entries and those that Berth found.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any
from uuid import UUID

from accounts.models import Tenant
from clusters import labels
from clusters.isolation import granting
from clusters.isolation.networks import known
from clusters.labels import HASH, digest_of
from clusters.models import Cluster
from clusters.own_place import is_inside, only_berth_opens_jupyter, own_namespace
from clusters.site import registries

# Denied unless the cluster's settings allow a part: private networks (RFC 1918, 6598, 4193) and link-local ones, where
# nodes and storage are.
PRIVATE = (
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "fc00::/7", "fe80::/10",
)  # fmt: skip
# Denied always: the clouds' metadata services (AWS, Google and others; AWS by IPv6; Alibaba; Azure; Oracle).
METADATA = (
    "169.254.169.254/32", "fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
)  # fmt: skip
# NodeLocal DNSCache listens here on each node: kubernetes.io/docs/tasks/administer-cluster/nodelocaldns
NODE_LOCAL_DNS = "169.254.20.10/32"
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
    if cluster.secret_accounts:
        inside.append(granting.role_binding(cluster, tenant.namespace, common))
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
    sign_ons = registries.secret(cluster, tenant.namespace, common)
    told = [registries.digest(cluster)] if sign_ons else []
    namespace["metadata"]["annotations"] = {HASH: digest_of([namespace, *inside, *told])}
    return [namespace, *inside, *([sign_ons] if sign_ons else [])]


POD_SECURITY_MODES = ("enforce", "warn", "audit")
# For containers that set nothing; Berth's own set everything.
DEFAULT_LIMITS = {
    "type": "Container",
    "default": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"},
    "defaultRequest": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "100Mi"},
}


def network_policy(cluster: Cluster) -> dict[str, Any]:
    """Ingress: workspace ports, for `ways_in`. Egress: the cluster's DNS, the internet, and allowed networks.

    No two blocks of a rule overlap, nor two of its exceptions: some enforcers keep each in one set, and refuse it then.
    """
    return {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": peers, "ports": [{"protocol": "TCP", "port": port} for port in ports]}
            for peers, ports in ways_in(cluster)
        ]
        + scrapers(cluster),
        "egress": [
            {"to": name_servers(cluster), "ports": DNS},
            *({"to": peers} for peers in reachable(cluster)),
        ],
    }


def ways_in(cluster: Cluster) -> list[tuple[list[dict[str, Any]], list[int]]]:
    """Peers, each with the ports that they reach.

    From outside: SSH, where workspaces have addresses or ports of their own, and JupyterLab, where people open it
    there. Everything, where Berth itself is outside.
    """
    berth, outside = berths_own_pods(cluster), everywhere_but(known(cluster).pods)
    if not only_berth_opens_jupyter(cluster):
        return [([*outside, *berth], [JUPYTER_PORT, SSH_PORT])]
    if cluster.exposure == Cluster.Exposure.PORTAL:
        return [(berth, [JUPYTER_PORT, SSH_PORT])]
    return [(berth, [JUPYTER_PORT]), ([*outside, *berth], [SSH_PORT])]


def scrapers(cluster: Cluster) -> list[dict[str, Any]]:
    """Rule for the Prometheus that the cluster's settings name: it reaches the ports that programs may open, but not
    those of JupyterLab and SSH."""
    if not cluster.metrics_namespace:
        return []
    name = {"kubernetes.io/metadata.name": cluster.metrics_namespace}
    closed = sorted((JUPYTER_PORT, SSH_PORT))
    ranges = zip([1024, *(port + 1 for port in closed)], [*(port - 1 for port in closed), 65535], strict=True)
    ports = [{"protocol": "TCP", "port": first, "endPort": last} for first, last in ranges]
    return [{"from": [{"namespaceSelector": {"matchLabels": name}}], "ports": ports}]


DNS = [{"protocol": protocol, "port": port} for protocol in ("UDP", "TCP") for port in (53, 5353)]


def name_servers(cluster: Cluster) -> list[dict[str, Any]]:
    """Peers for the cluster's DNS: the pods of Kubernetes' add-on, or OpenShift's, which listen on 5353.

    Some network plugins, and NodeLocal DNSCache, see the address of the Service in place of the pod's. As long as the
    service networks are unknown, that may be any private one.
    """
    name, namespaces = "kubernetes.io/metadata.name", ["kube-system", "openshift-dns"]
    pods = {"matchExpressions": [{"key": name, "operator": "In", "values": namespaces}]}
    services = known(cluster).services or PRIVATE
    return [
        {"namespaceSelector": pods},
        *({"ipBlock": {"cidr": cidr}} for cidr in sorted(outermost({NODE_LOCAL_DNS, *services}))),
    ]


def reachable(cluster: Cluster) -> list[list[dict[str, Any]]]:
    """Peers for the internet, and for each of the private networks that the settings allow.

    Never the cluster itself: its pods, Services, API server and nodes, whose addresses may be public.
    """
    networks = known(cluster)
    never = [
        *networks.pods,
        *networks.services,
        *networks.api,
        *networks.nodes,
        *cluster.denied_cidrs,
        *METADATA,
    ]
    rules = [everywhere_but([*never, *PRIVATE])]
    for allowed in sorted(cluster.allowed_cidrs):
        if not any(_is_inside(allowed, cidr) for cidr in never):
            inside = sorted(outermost({cidr for cidr in never if _is_inside(cidr, allowed)}))
            rules.append([{"ipBlock": {"cidr": allowed} | ({"except": inside} if inside else {})}])
    return rules


def _is_inside(inner: str, outer: str) -> bool:
    one, other = ip_network(inner), ip_network(outer)
    return one.version == other.version and one.subnet_of(other)  # type: ignore[arg-type]


def outermost(cidrs: set[str]) -> set[str]:
    """Return the networks that lie inside no other: most nodes have addresses in one of the private networks."""
    wide = {cidr for cidr in cidrs if not cidr.endswith(("/32", "/128"))}
    return {cidr for cidr in cidrs if not any(cidr != other and _is_inside(cidr, other) for other in wide)}


def berths_own_pods(cluster: Cluster) -> list[dict[str, Any]]:
    """Peers for Berth's gateway and SSH jump if they run in this cluster. Nobody else can use that namespace's name."""
    if not is_inside(cluster):
        return []
    return [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": own_namespace()}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "berth"}},
        }
    ]


def everywhere_but(cidrs: list[str]) -> list[dict[str, Any]]:
    """Peers for all addresses of both families, less the given networks; of networks inside others only the outer."""
    peers = []
    for whole in ("0.0.0.0/0", "::/0"):
        block: dict[str, Any] = {"cidr": whole}
        family = {cidr for cidr in cidrs if (":" in cidr) == (":" in whole)}
        if excepted := sorted(outermost(family)):
            block["except"] = excepted
        peers.append({"ipBlock": block})
    return peers
