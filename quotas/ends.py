"""Ends of runs: the latest that one may ask for, by the rules of an admission pass; and the one that it expects."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

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


# --- ends that holders expect

MOVED_PART, MOVED_LEAST = 0.1, timedelta(minutes=1)


def expect(claim_id: UUID, end: datetime | None, now: datetime) -> None:
    """Note when the holder expects its run to end, for forecasts of the queue alone.

    Admission plans by ends that are enforced (`ends_at`, `must_end_at`), which never move here. A change that nobody
    would notice is not written.
    """
    running = Claim.objects.filter(pk=claim_id, state=Claim.State.ADMITTED)
    known = running.values_list("expected_end_at", flat=True).first()
    if (
        known is not None
        and end is not None
        and abs(known - end) < max(MOVED_LEAST, MOVED_PART * (known - now))
    ):
        return
    if known != end:
        running.update(expected_end_at=end)
