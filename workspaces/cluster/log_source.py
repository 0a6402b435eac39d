"""Source of the log that a workspace's pod writes."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from clusters import labels
from quotas.models import Claim
from workloads.logs.sources import Kind, Pod, Source
from workspaces.models import Workspace

from .pod import CONTAINER


def describe(pod: Pod) -> Source | None:
    tenant_id = Workspace.objects.filter(pk=pod.holder_id).values_list("tenant", flat=True).first()
    return None if tenant_id is None else Source(tenant_id)


def owned(person_id: UUID, tenant_id: UUID) -> QuerySet[Workspace, UUID]:
    return Workspace.objects.filter(owner=person_id, tenant=tenant_id).values_list("pk", flat=True)


KIND = Kind(labels.WORKSPACE, Claim.Holder.WORKSPACE, CONTAINER, describe, owned)
