"""Read a workspace's objects from its cluster: a handful of small requests, all selected by our labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from clusters import labels
from clusters.api import Api

from .models import Workspace
from .observe import Object, Seen, condition


def labels_of(workspace: Workspace) -> dict[str, str]:
    return labels.instance_selector() | {labels.WORKSPACE: str(workspace.pk)}


def look_at(workspace: Workspace, api: Api) -> Seen:
    """What is there now. The StatefulSet before the pods: if it is gone, none comes after those that are seen."""
    namespace, ours = workspace.tenant.namespace, labels_of(workspace)
    return Seen(
        stateful_set=api.get("StatefulSet", namespace, workspace.object_name),
        pods=api.list("Pod", namespace=namespace, labels=ours),
        volume_claims=api.list("PersistentVolumeClaim", namespace=namespace, labels=ours),
    )


def look_closely(workspace: Workspace, api: Api) -> Seen:
    """And what a start waits for. Events are read only while something is not as it should be."""
    seen = look_at(workspace, api)
    seen = replace(
        seen,
        service=api.get("Service", workspace.tenant.namespace, workspace.object_name),
        binding_modes=binding_modes(seen.volume_claims, api),
    )
    if settled(seen):
        return seen
    return replace(seen, events=events_about(workspace, seen, api), node=node_of(seen, api))


def settled(seen: Seen) -> bool:
    return bool(seen.pod and condition(seen.pod, "Ready") == "True" and seen.service)


def node_of(seen: Seen, api: Api) -> Object | None:
    name = seen.pod["spec"].get("nodeName") if seen.pod else None
    return api.get("Node", None, name) if name else None


def binding_modes(claims: Sequence[Object], api: Api) -> dict[str, str]:
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
    about: list[Object] = [*seen.volume_claims, *seen.pods]
    if not seen.pods and seen.stateful_set:
        about.append(seen.stateful_set)
    if seen.service:
        about.append(seen.service)
    found: list[dict[str, Any]] = []
    for body in about:
        fields = {"involvedObject.uid": body["metadata"]["uid"]}
        found += api.list("Event", namespace=workspace.tenant.namespace, fields=fields)
    return found
