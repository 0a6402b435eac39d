"""Findings as rows, and their page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from monitoring.models import Finding
from tests.cast import Cast

PAGE = "/admin/monitoring/finding/"


def finding(cast: Cast, what: str, kind: str = "Secret", **fields: Any) -> Finding:
    now = timezone.now()
    given = {"name": f"{what}-{kind.lower()}", "namespace": "berth-demo", "uid": "uid", "tenant_slug": "demo"}
    times = {"first_seen_at": now - timedelta(minutes=9), "confirmed_at": now}
    return Finding.objects.create(cluster=cast.cluster, what=what, kind=kind, **given | times | fields)
