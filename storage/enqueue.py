"""Marks that ask for a look at a volume."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from clusters.watch import keeping

CHANNEL = "berth_volumes"


def look(ids: Iterable[UUID]) -> None:
    """Ask for a look at each: something about it changed."""
    keeping.mark(ids, CHANNEL, "storage_volume", "row.cluster_id")
