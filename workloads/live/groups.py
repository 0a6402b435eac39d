"""Groups of the channel layer: those that follow one workspace or job, a tenant's, or all. `kind`: workspace or job."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from accounts.live import publish_to_all
from workloads.models import Workload


def of_row(kind: str, pk: UUID) -> str:
    return f"{kind}.{pk}"


def of_tenant(kind: str, tenant: UUID) -> str:
    return f"{kind}s.{tenant}"


def of_staff(kind: str) -> str:
    return f"{kind}s.staff"


def announce(kind: str, row: Workload) -> None:
    """Wake the pages that show the row: its own page, its tenant's lists, the admins' lists."""
    groups = [of_row(kind, row.pk), of_tenant(kind, row.tenant_id), of_staff(kind)]
    publish_to_all(groups, {"type": f"{kind}.changed", "id": str(row.pk)})


def announce_all(kind: str, tenants: Iterable[UUID], rows: Iterable[UUID]) -> None:
    """Let lists of these tenants and pages of these rows read everything again."""
    groups = [of_staff(kind), *(of_tenant(kind, pk) for pk in tenants), *(of_row(kind, pk) for pk in rows)]
    publish_to_all(groups, {"type": "resync"})
