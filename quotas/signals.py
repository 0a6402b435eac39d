"""Signals from quotas, sent inside the transaction that changes the claim.

`holders.py` passes them on to what holds the claim. What quotas ask rooms above is registered there, never a signal.
"""

from django.dispatch import Signal

claim_admitted = Signal()  # claim: Claim
claim_waits = Signal()  # claim: Claim; its reason changed, or it was sent back
standing_changed = Signal()  # claims: list[Claim]; their positions in the queue or forecasts changed
claim_to_stop = Signal()  # claim: Claim, code: str; it must give its units back
claim_preempted = Signal()  # claim: Claim; it is preempted and may run until `reclaim_at`
claim_preemption_cancelled = Signal()  # claim: Claim; its preemption is cancelled
# claim: Claim; its budget is spent and it may run until `budget_ends_at`; None: it may continue after all
claim_ends_by_budget = Signal()
# claim: Claim, successor: Claim | None; set when the holder goes on under another claim
claim_released = Signal()
