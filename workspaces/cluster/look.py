"""Read a workspace's objects from its cluster: a handful of small requests, all selected by our labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.utils import timezone

from clusters import labels
from clusters.api import Api
from workspaces.models import Workspace

from .observe import Object, Snapshot, condition

USUAL = timedelta(seconds=15)  # for a step; the periodic pass looks at slower ones


def labels_of(workspace: Workspace) -> dict[str, str]:
    return labels.instance_selector() | {labels.WORKSPACE: str(workspace.pk)}


def look_at(workspace: Workspace, api: Api) -> Snapshot:
    """Read what is there now. StatefulSet before pods: if it is gone, no pod follows those that are seen."""
    return Snapshot(
        stateful_set=api.get("StatefulSet", workspace.tenant.namespace, workspace.object_name),
        pods=all_of("Pod", workspace, [] if workspace.pod_ended else [f"{workspace.object_name}-0"], api),
        volume_claims=all_of("PersistentVolumeClaim", workspace, workspace.volumes, api),
    )


def all_of(kind: str, workspace: Workspace, known: Iterable[str], api: Api) -> list[Object]:
    """Find objects by label, and known ones also by name: their labels may have been removed by hand."""
    namespace = workspace.tenant.namespace
    found: list[Object] = [*api.list(kind, namespace=namespace, labels=labels_of(workspace))]
    names = {body["metadata"]["name"] for body in found}
    found += [
        body for name in sorted({*known} - names) if (body := api.get(kind, namespace, name)) is not None
    ]
    return found


def look_closely(workspace: Workspace, api: Api) -> Snapshot:
    """Read also what a start waits for. The StatefulSet owns the Service: without the one there is no other."""
    seen = look_at(workspace, api)
    if seen.stateful_set is None:
        return seen
    service = api.get("Service", workspace.tenant.namespace, workspace.object_name)
    return replace(seen, service=service, binding_modes=binding_modes(seen.volume_claims, api))


def look_at_storage(workspace: Workspace, seen: Snapshot, api: Api) -> Snapshot:
    """Read the PVCs again if any was not bound."""
    claims = seen.volume_claims
    if any(claim.get("status", {}).get("phase") != "Bound" for claim in claims):
        claims = api.list(
            "PersistentVolumeClaim", namespace=workspace.tenant.namespace, labels=labels_of(workspace)
        )
    return replace(seen, volume_claims=claims, binding_modes=binding_modes(claims, api))


def read_trouble_details(workspace: Workspace, seen: Snapshot, api: Api) -> Snapshot:
    """Read events and node, which explain a delay, if the watch reported a trouble or the step takes long."""
    is_slow = timezone.now() - workspace.step_since > USUAL
    pod = seen.pod
    is_settled = pod and condition(pod, "Ready") == "True" and seen.service
    if is_settled or not (workspace.warned or is_slow):
        return seen
    node = pod["spec"].get("nodeName") if pod else None
    events = events_about(workspace, seen, api)
    return replace(seen, events=events, node=api.get("Node", None, node) if node else None)


def binding_modes(claims: Sequence[Object], api: Api) -> dict[str, str]:
    """Binding mode by storage class, for PVCs that are not bound yet."""
    pending = {
        claim["spec"].get("storageClassName", "")
        for claim in claims
        if claim.get("status", {}).get("phase") == "Pending"
    }
    found = {name: api.get("StorageClass", None, name) for name in pending - {""}}
    return {name: body.get("volumeBindingMode", "Immediate") for name, body in found.items() if body}


def events_about(workspace: Workspace, seen: Snapshot, api: Api) -> list[dict[str, Any]]:
    """Events that can explain why a start does not go on: of this run's objects only, by uid."""
    controller = None if seen.pods else seen.stateful_set
    about = [body for body in (*seen.volume_claims, *seen.pods, controller, seen.service) if body]
    found: list[dict[str, Any]] = []
    for body in about:
        fields = {"involvedObject.uid": body["metadata"]["uid"]}
        found += api.list("Event", namespace=workspace.tenant.namespace, fields=fields)
    return found
