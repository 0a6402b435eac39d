"""Namespace of a tenant in a cluster: made before its first object, kept as wanted, never taken over from others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from accounts.models import Tenant
from clusters import labels
from clusters.isolation import granting
from clusters.labels import HASH
from clusters.mirror import Mirror
from clusters.models import Cluster
from quotas.allowed.ceilings import ceilings

from . import manifests


class NoNamespace(Exception):
    """The namespace belongs to somebody else, or it is going: then it can be made anew soon."""

    def __init__(self, namespace: str, *, is_going: bool) -> None:
        super().__init__(namespace)
        self.code = "namespace_terminating" if is_going else "namespace_foreign"
        self.namespace, self.is_going = namespace, is_going


def wanted_objects(tenant: Tenant, cluster: Cluster, instance: UUID) -> list[dict[str, Any]]:
    """Return the namespace and what is to be in it, namespace first. Two queries."""
    return manifests.objects(tenant, cluster, instance, ceilings(tenant, cluster))


def ensure(objects: Sequence[dict[str, Any]], instance: UUID, mirror: Mirror) -> None:
    """Apply the namespace and its contents if they differ from what is wanted; the namespace's digest comes last.

    Raises NoNamespace if the namespace belongs to somebody else or is being deleted.
    """
    namespace, *inside = objects
    name = namespace["metadata"]["name"]
    there = mirror.get("Namespace", None, name) or mirror.api.get("Namespace", None, name)
    if there is not None:
        metadata = there["metadata"]
        if metadata.get("labels", {}).get(labels.INSTANCE) != str(instance):
            raise NoNamespace(name, is_going=False)
        if metadata.get("deletionTimestamp"):
            raise NoNamespace(name, is_going=True)
        if metadata.get("annotations", {}).get(HASH) == namespace["metadata"]["annotations"][HASH]:
            return
    else:
        unmarked = {k: v for k, v in namespace["metadata"].items() if k != "annotations"}
        mirror.apply({**namespace, "metadata": unmarked})
    for body in inside:
        mirror.apply(body)
        if body["kind"] == "RoleBinding":  # before the Secret that it allows, which comes last
            granting.wait(name, mirror.api)
    mirror.apply(namespace)
