"""Whose log a workspace's pod writes."""

from __future__ import annotations

from clusters import labels
from quotas.models import Claim
from workloads.logs.sources import Kind, Pod, Source
from workspaces.models import Workspace

CONTAINER_NAME = "workspace"  # as pod.py names it


def describe(pod: Pod) -> Source | None:
    tenant_id = Workspace.objects.filter(pk=pod.holder_id).values_list("tenant", flat=True).first()
    return None if tenant_id is None else Source(tenant_id)


KIND = Kind(labels.WORKSPACE, Claim.Holder.WORKSPACE, CONTAINER_NAME, describe)
