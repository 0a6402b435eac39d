"""Latest end that a run may ask for, by the rules of an admission pass."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from quotas import pool_state
from quotas.models import Claim
from quotas.scheduling import may_last_until

KEPT_FOR_OTHERS, OUT_OF_BUDGET = "kept_for_others", "out_of_budget"


class Bound(NamedTuple):
    """Latest allowed end, and why: a code of `reasons.py`."""

    until: datetime
    code: str


def bound(claim: Claim) -> Bound | None:
    """Return the earliest bound on a run's end; None: unbounded. Requires the cluster's lock."""
    waiting = Claim.objects.filter(pool=claim.pool_id, state=Claim.State.WAITING)
    promised = (
        (claim.must_end_at, KEPT_FOR_OTHERS),
        (may_last_until(pool_state.read(claim.pool, waiting), claim.pk), KEPT_FOR_OTHERS),
        (claim.reclaim_at, claim.reclaim_code),
        (claim.budget_ends_at, OUT_OF_BUDGET),
    )
    return min((Bound(until, code) for until, code in promised if until is not None), default=None)
