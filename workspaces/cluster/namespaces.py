"""Namespace of a tenant in a cluster: made before its first launch, kept as wanted, never taken over from others."""

from __future__ import annotations

from uuid import UUID

from accounts.models import Tenant
from clusters import labels
from clusters.api import Api
from clusters.causes.cause import Diagnosis
from clusters.models import Cluster
from quotas.allowed.ceilings import ceilings

from . import tenancy
from .digest import HASH


class NamespaceTrouble(Exception):
    """The namespace cannot be used. `final`: waiting does not help."""

    def __init__(self, code: str, namespace: str, *, final: bool) -> None:
        super().__init__(code)
        self.diagnosis = Diagnosis(code=code, data={"namespace": namespace}, known=True)
        self.final = final


def ensure_tenant(tenant: Tenant, cluster: Cluster, instance: UUID, api: Api) -> None:
    """Apply the namespace and its contents if they differ from what is wanted; the namespace's digest comes last."""
    namespace, *inside = tenancy.objects(tenant, cluster, instance, ceilings(tenant, cluster))
    there = api.get("Namespace", None, tenant.namespace)
    if there is not None:
        metadata = there["metadata"]
        if metadata.get("labels", {}).get(labels.INSTANCE) != str(instance):
            raise NamespaceTrouble("namespace_foreign", tenant.namespace, final=True)
        if metadata.get("deletionTimestamp"):
            raise NamespaceTrouble("namespace_terminating", tenant.namespace, final=False)
        if metadata.get("annotations", {}).get(HASH) == namespace["metadata"]["annotations"][HASH]:
            return
    else:
        unmarked = {
            **namespace,
            "metadata": {k: v for k, v in namespace["metadata"].items() if k != "annotations"},
        }
        api.apply(unmarked)
    for body in inside:
        api.apply(body)
    api.apply(namespace)
