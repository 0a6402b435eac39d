"""Findings of a look, written down: new, lasting and over. The number of queries is fixed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from accounts.locks import locked
from clusters.labels import digest_of
from clusters.models import Cluster
from monitoring.models import Finding
from workspaces.models import Workspace

from . import of_jobs
from .compare import Discrepancy
from .survey import SurveyResult

# A difference that lasts less than a minute is normal work.
LASTS = timedelta(seconds=60)
FORGOTTEN_AFTER = timedelta(days=90)
BATCH = 500
WRITTEN = ("data", "digest", "confirmed_at", "accepted_at", "accepted_by", "last_seen_at", "resolved_at")

# Limit per object: a person who may write the object can add as many fields as fit into it.
MOST_FIELDS = 50

Identity = tuple[str, str, str, str, str]


def write(cluster: Cluster, seen: SurveyResult, now: datetime, before: datetime | None) -> None:
    """Write the findings. `now`: begin of the look; `before`: end of the last one, when resolved ones still existed."""
    open_rows = Finding.objects.filter(cluster=cluster, resolved_at__isnull=True)
    there = {identity_of(row): row for row in locked(open_rows)}
    found = {(str(one.what), *one.key, one.uid): one for one in seen.found}
    changed = [row for key, row in there.items() if key in found and is_changed_by(row, found[key], now)]
    gone = [row for key, row in there.items() if key not in found and row.workspace_uuid not in seen.moving]
    for row in gone:
        row.resolved_at, row.last_seen_at = now, before
    over = [row for row in gone if row.confirmed_at]
    Finding.objects.filter(pk__in=[row.pk for row in gone if not row.confirmed_at]).delete()
    Finding.objects.bulk_update([*changed, *over], WRITTEN, batch_size=BATCH)
    new = [one for key, one in found.items() if key not in there]
    known = set(Workspace.objects.filter(pk__in={one.workspace for one in new}).values_list("pk", flat=True))
    jobs = of_jobs.jobs_of(one.job for one in new if one.job)
    rows = [row_of(cluster, one, known, jobs, now) for one in new]
    Finding.objects.bulk_create(rows, batch_size=BATCH)
    Finding.objects.filter(cluster=cluster, resolved_at__lt=now - FORGOTTEN_AFTER).delete()


def identity_of(row: Finding) -> Identity:
    return row.what, row.kind, row.namespace, row.name, row.uid


def row_of(
    cluster: Cluster, one: Discrepancy, known: set[UUID], jobs: Mapping[UUID, UUID], now: datetime
) -> Finding:
    return Finding(
        cluster=cluster,
        what=one.what,
        kind=one.key.kind,
        namespace=one.key.namespace,
        name=one.key.name,
        uid=one.uid,
        workspace_uuid=one.workspace,
        workspace_id=one.workspace if one.workspace in known else None,
        job_id=jobs.get(one.job) if one.job else None,
        tenant_slug=one.tenant[:63],
        data=data_of(one),
        digest=digest_in(one),
        first_seen_at=now,
    )


def is_changed_by(row: Finding, one: Discrepancy, now: datetime) -> bool:
    """Take over the differences. Return True if the row changed. A change revokes an earlier acceptance."""
    is_changed = False
    if row.digest != (digest := digest_in(one)):
        row.data, row.digest = data_of(one), digest
        row.accepted_at = row.accepted_by = None
        is_changed = True
    if row.confirmed_at is None and abs(now - row.first_seen_at) >= LASTS:
        row.confirmed_at = now
        is_changed = True
    return is_changed


def data_of(one: Discrepancy) -> dict[str, Any]:
    told, others = one.differences[:MOST_FIELDS], one.differences[MOST_FIELDS:]
    fields = [{"path": each.path, "by": each.by, "at": each.at, "value": each.value} for each in told]
    if others:
        first = others[0]
        fields.append({"path": f"… (+{len(others)})", "by": first.by, "at": first.at, "value": None})
    return {"fields": fields}


def digest_in(one: Discrepancy) -> str:
    told = [(each.path, each.by, each.at, each.digest) for each in one.differences]
    return digest_of(told) if told else ""
