"""Namespace of a tenant in a cluster: made before its first launch, kept as wanted, never taken over from others."""

from __future__ import annotations

from accounts.models import Tenant
from clusters import labels
from clusters.mirror import Mirror
from clusters.models import Cluster

from .digest import HASH
from .observe import Blocked, Outcome
from .wanted import Shared


def ensure_tenant(tenant: Tenant, cluster: Cluster, shared: Shared, mirror: Mirror) -> None:
    """Apply the namespace and its contents if they differ from what is wanted; the namespace's digest comes last.

    Raises Blocked if the namespace belongs to somebody else or is being deleted.
    """
    namespace, *inside = shared.tenant_objects(tenant, cluster)
    there = mirror.get("Namespace", None, tenant.namespace) or mirror.api.get(
        "Namespace", None, tenant.namespace
    )
    if there is not None:
        metadata = there["metadata"]
        if metadata.get("labels", {}).get(labels.INSTANCE) != str(shared.instance):
            raise Blocked("namespace_foreign", Outcome.FAIL, namespace=tenant.namespace)
        if metadata.get("deletionTimestamp"):
            raise Blocked("namespace_terminating", Outcome.WAIT, namespace=tenant.namespace)
        if metadata.get("annotations", {}).get(HASH) == namespace["metadata"]["annotations"][HASH]:
            return
    else:
        unmarked = {
            **namespace,
            "metadata": {k: v for k, v in namespace["metadata"].items() if k != "annotations"},
        }
        mirror.apply(unmarked)
    for body in inside:
        mirror.apply(body)
    mirror.apply(namespace)
