"""Runs as the ledger and budgets find them: rows with chosen times, made without a pass."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from accounts.access import Actor
from quotas.accounting import ledger
from quotas.models import Claim
from tests.shared.stage import Stage


def run_of(
    stage: Stage, admitted_at: datetime | None, gpus: int = 1, *, by: Actor | None = None, **values: Any
) -> Claim:
    """Create a run since `admitted_at`: alice's in demo, or carol's in second."""
    by = by or stage.cast.alice
    defaults: dict[str, Any] = {
        "tenant": stage.cast.second if by == stage.cast.carol else stage.cast.demo,
        "user": by.user,
        "pool": stage.pool,
        "units": gpus,
        "cpu_millicores": 1000,
        "memory_mib": 1024,
        "holder_kind": Claim.Holder.WORKSPACE,
        "holder_id": uuid.uuid4(),
        "place": 1,
        "state": Claim.State.ADMITTED,
        "node": "gpu-1",
        "admitted_at": admitted_at,
    }
    values = defaults | values
    return Claim.objects.create(**({"nodes": [values["node"]]} if values["node"] else {}) | values)


def ran(
    stage: Stage,
    admitted_at: datetime,
    hours: float,
    gpus: int = 1,
    *,
    by: Actor | None = None,
    **values: Any,
) -> Claim:
    """Create a run that has ended, with its time in the ledger."""
    released_at = admitted_at + timedelta(hours=hours)
    claim = run_of(stage, admitted_at, gpus, by=by, state="released", released_at=released_at, **values)
    ledger.close(claim)
    return claim
