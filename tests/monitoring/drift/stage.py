"""Helpers for drift: objects set by hand on a trial cluster, and looks that have seen them for a while."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db.models import F

from clusters.api import Api
from clusters.models import Cluster, Installation
from monitoring.drift import looks
from monitoring.models import Finding
from tests.cast import Cast


def planted(
    kind: str, namespace: str, name: str, *, workspace: str = "", instance: str = "", **body: Any
) -> dict[str, Any]:
    """Return an object with the labels of this installation, or of another."""
    labels = {
        "app.kubernetes.io/managed-by": "berth",
        "berth.dev/instance": instance or str(Installation.current_id()),
        "berth.dev/workspace": workspace or str(uuid4()),
    }
    metadata = {"name": name, "labels": labels, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **body}


def claim_body(namespace: str, name: str, **more: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}
    return planted("PersistentVolumeClaim", namespace, name, spec=spec, **more)


def look(cluster: Cluster) -> set[tuple[str, str, str]]:
    """Take a look. Return the findings shown after it, as (what, kind, name)."""
    looks.look(cluster.pk)
    return shown()


def look_for_a_while(cluster: Cluster) -> set[tuple[str, str, str]]:
    """Return the findings shown for what has been there for more than a minute."""
    looks.look(cluster.pk)
    Finding.objects.update(first_seen_at=F("first_seen_at") - timedelta(minutes=2))
    return look(cluster)


def shown() -> set[tuple[str, str, str]]:
    return set(Finding.objects.open().values_list("what", "kind", "name"))


def finding(kind: str, name: str = "") -> Finding:
    rows = Finding.objects.open().filter(kind=kind)
    return rows.get(name=name) if name else rows.get()


def scrap(api: Api, house: Cast, kind: str, name: str) -> None:
    """Delete the object at once, even if it has finalizers."""
    namespace = house.demo.namespace
    api.merge_patch(kind, namespace, name, {"metadata": {"finalizers": None}})
    api.delete(kind, namespace, name, grace_seconds=0)
