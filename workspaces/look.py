"""Read a workspace's objects from its cluster: a handful of small requests, all selected by our labels."""

from __future__ import annotations

from typing import Any

from clusters import labels
from clusters.api import Api

from .models import Workspace
from .observe import Seen, condition


def labels_of(workspace: Workspace) -> dict[str, str]:
    return labels.instance_selector() | {labels.WORKSPACE: str(workspace.pk)}


def look_at(workspace: Workspace, api: Api) -> Seen:
    """What is there now. Events are read only while something is not as it should be."""
    namespace, name = workspace.tenant.namespace, workspace.object_name
    ours = labels_of(workspace)
    claims = api.list("PersistentVolumeClaim", namespace=namespace, labels=ours)
    pods = api.list("Pod", namespace=namespace, labels=ours)
    seen = Seen(
        volume_claims=claims,
        stateful_set=api.get("StatefulSet", namespace, name),
        pods=pods,
        service=api.get("Service", namespace, name),
        binding_modes=binding_modes(claims, api),
    )
    if settled(seen):
        return seen
    return Seen(
        volume_claims=claims,
        stateful_set=seen.stateful_set,
        pods=pods,
        service=seen.service,
        binding_modes=seen.binding_modes,
        events=events_about(workspace, seen, api),
    )


def settled(seen: Seen) -> bool:
    return bool(seen.pod and condition(seen.pod, "Ready") == "True" and seen.service)


def binding_modes(claims: list[dict[str, Any]], api: Api) -> dict[str, str]:
    """Of the classes of claims that are not bound yet."""
    pending = {
        claim["spec"].get("storageClassName", "")
        for claim in claims
        if claim.get("status", {}).get("phase") == "Pending"
    }
    modes = {}
    for name in pending - {""}:
        storage_class = api.get("StorageClass", None, name)
        if storage_class is not None:
            modes[name] = storage_class.get("volumeBindingMode", "Immediate")
    return modes


def events_about(workspace: Workspace, seen: Seen, api: Api) -> list[dict[str, Any]]:
    """Events of the objects that can tell why a start does not go on; of this run's objects only, by uid."""
    about = [*seen.volume_claims, *seen.pods]
    if not seen.pods and seen.stateful_set:
        about.append(seen.stateful_set)
    if seen.service:
        about.append(seen.service)
    found: list[dict[str, Any]] = []
    for body in about:
        fields = {"involvedObject.uid": body["metadata"]["uid"]}
        found += api.list("Event", namespace=workspace.tenant.namespace, fields=fields)
    return found
