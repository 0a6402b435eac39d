"""Objects of one workspace, taken from the mirror of its cluster. Nothing is read but what the watch could not tell."""

from __future__ import annotations

from collections.abc import Iterable

from clusters.mirror import Mirror
from storage.models import Mount
from workloads.pods.looking import binding_modes, with_reasons
from workloads.pods.status import Object
from workloads.pods.troubles import Snapshot
from workspaces.models import Workspace


def look_at(workspace: Workspace, own: Iterable[Mount], mirror: Mirror) -> Snapshot:
    """Return what is there as last heard. `own`: the mounts of its home and disk."""
    found = (mirror.get("PersistentVolumeClaim", workspace.tenant.namespace, name) for name in names_of(own))
    claims = [claim for claim in found if claim is not None]
    pods = pods_of(workspace, mirror)
    seen = Snapshot(
        volume_claims=claims,
        pods=pods,
        service=mirror.get("Service", workspace.tenant.namespace, workspace.object_name),
        binding_modes=binding_modes(claims, mirror),
    )
    return with_reasons(seen, mirror)


def names_of(mounts: Iterable[Mount]) -> list[str]:
    return [one.volume.object_name for one in mounts]


def read_anew(workspace: Workspace, own: Iterable[Mount], mirror: Mirror) -> None:
    """Read the objects that a run waits for, which are few and named."""
    namespace, name = workspace.tenant.namespace, workspace.object_name
    for claim in names_of(own):
        mirror.read_anew("PersistentVolumeClaim", namespace, claim)
    mirror.read_anew("Pod", namespace, name)
    mirror.read_anew("Service", namespace, name)


def pods_of(workspace: Workspace, mirror: Mirror) -> list[Object]:
    """Return the workspace's pods. The last one seen is asked for before it counts as vanished."""
    namespace, name = workspace.tenant.namespace, workspace.object_name
    names = [name, f"{name}-0"]  # the second as a StatefulSet called it
    pods: list[Object] = [*mirror.of("Pod", str(workspace.pk), also=names, namespace=namespace)]
    if not workspace.pod_ended and all(pod["metadata"]["uid"] != workspace.pod_uid for pod in pods):
        there = mirror.api.get("Pod", namespace, name)
        if there is not None and there["metadata"]["uid"] == workspace.pod_uid:
            pods.append(there)
    return pods


def may_have_a_pod(workspace: Workspace, mirror: Mirror) -> bool:
    """Return True if the run may have a pod that nobody has seen: its creation was asked for, and not yet reported."""
    return mirror.api.get("Pod", workspace.tenant.namespace, workspace.object_name) is not None
