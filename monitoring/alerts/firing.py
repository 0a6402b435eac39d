"""A firing: something that is wrong now, as a source tells it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from monitoring.models import Severity

LONGEST_KEY = 180


@dataclass(frozen=True, kw_only=True)
class Firing:
    """One thing that is wrong. `key` stays the same while it lasts, and when it begins again."""

    key: str
    code: str
    data: Mapping[str, Any] = field(default_factory=dict)
    severity: Severity = Severity.WARNING
    since: datetime
    cluster_id: UUID | None = None
    node: str = ""
    # What it is about, if that is not the node: a GPU, a volume, a part of Berth.
    name: str = ""
    pool_ids: tuple[UUID, ...] = ()
    tenant_id: UUID | None = None
    # Path of a page that shows it.
    link: str = ""
    # Firings of one code that are no group: a group per value.
    apart: str = ""

    @property
    def group(self) -> str:
        return key_of(self.code, str(self.cluster_id or ""), str(self.tenant_id or ""), self.apart)


def key_of(*parts: str) -> str:
    """Return the parts as one key. A long one is replaced by its digest."""
    key = "/".join(parts)
    return key if len(key) <= LONGEST_KEY else hashlib.sha256(key.encode()).hexdigest()
