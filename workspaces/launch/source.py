"""A workspace as a pattern for a job."""

from __future__ import annotations

from uuid import UUID

from accounts.access import Actor
from storage.mounts import mounting
from workloads.copies import Source, source_of
from workspaces import access


def find(actor: Actor, pk: UUID) -> Source:
    row = access.get(actor, pk)
    secrets = row.secret.clear_env() if access.is_own(actor, row) else None
    return source_of(actor, row, mounting.all_of([row.pk]).get(row.pk, []), secrets)
