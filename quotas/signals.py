"""Signals from quotas to the room above, sent inside the transaction that changes the claim.

A receiver that updates its holder's row locks that row after the claim's: see the order in `admission.py`.
"""

from django.dispatch import Signal

claim_admitted = Signal()  # claim: Claim
claim_waits = Signal()  # claim: Claim; its reason changed, or it was sent back
standing_changed = Signal()  # claims: list[Claim]; their positions in the queue or forecasts changed
claim_to_stop = Signal()  # claim: Claim, code: str; it must give its units back
claim_reclaimed = Signal()  # claim: Claim; it is preempted and may run until `reclaim_at`
claim_spared = Signal()  # claim: Claim; its preemption is cancelled
# claim: Claim; its budget is spent and it may run until `budget_ends_at`; None: it may continue after all
claim_ends_by_budget = Signal()
ask_storage = Signal()  # tenants: set[UUID]; asks the rooms above for {tenant: MiB of promised storage}
name_holders = Signal()  # holders: set[UUID]; asks the rooms above for {id: name} of their holders
# held: list[accounting.used.Held]; asks the room above for {(run, day): seconds that its GPUs were busy}
ask_busy = Signal()
claim_released = (
    Signal()
)  # claim: Claim, successor: Claim | None; set when the holder goes on under another claim
