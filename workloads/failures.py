"""Why a workload failed, as its row keeps it: {code, data, at, run}. `run`: the run that failed, if one had begun."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone


def failure(code: str, data: Mapping[str, Any], at: datetime, run: UUID | None = None) -> dict[str, Any]:
    kept = {"code": code, "data": dict(data), "at": at.isoformat()}
    return kept | ({"run": str(run)} if run is not None else {})


def post_mortem_of(kept: Mapping[str, Any]) -> str | None:
    """Return the id of the record of the run that failed, which the room above keeps; None: there is none, or no more.

    A record has its run's id, and is opened in the transaction that writes the failure.
    """
    run = kept.get("run")
    return None if run is None or is_past(datetime.fromisoformat(kept["at"])) else str(run)


def is_past(ended_at: datetime) -> bool:
    """Return True if records of that time are not kept any more."""
    return ended_at < timezone.now() - timedelta(days=settings.POST_MORTEM_DAYS)
