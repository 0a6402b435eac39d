"""Pod of a workspace in the rows of the watch."""

from __future__ import annotations

from clusters.models import PodUsage
from workspaces.models import Workspace


def pod_of(workspace: Workspace) -> str:
    return f"{workspace.object_name}-0"


def has_pod(workspace: Workspace, uid: str) -> None:
    """Add the workspace's pod on gpu-1."""
    PodUsage.objects.create(
        cluster=workspace.pool.cluster, uid=uid, namespace="berth-demo", name=pod_of(workspace), node="gpu-1",
        run=workspace.run,
    )  # fmt: skip
