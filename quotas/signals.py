"""What quotas tell the room above, sent inside the transaction that changes the claim.

A receiver that updates its holder's row takes that row's lock after the claim's: see the order in `admission.py`.
"""

from django.dispatch import Signal

claim_admitted = Signal()  # claim: Claim
claim_waits = Signal()  # claim: Claim; its reason became another, or it was sent back
standing_changed = Signal()  # claims: list[Claim]; their places in the queue or forecasts became others
claim_to_stop = Signal()  # claim: Claim, code: str; it must give its units back
claim_reclaimed = Signal()  # claim: Claim; its GPUs are asked back, it goes on until `reclaim_at`
claim_spared = Signal()  # claim: Claim; it may stay after all
# Its budget is spent: it goes on until `budget_ends_at`; None: after all it goes on. claim: Claim
claim_ends_by_budget = Signal()
ask_storage = (
    Signal()
)  # tenants: set[UUID]; asks the rooms above for {tenant: MiB of storage} that was promised
name_holders = Signal()  # holders: set[UUID]; asks the rooms above for {id: name} of those that are theirs
# held: list[accounting.used.Held]; asks the room above for {(run, day): seconds that its GPUs were busy}
ask_busy = Signal()
claim_released = (
    Signal()
)  # claim: Claim, successor: Claim | None; set when the holder goes on under another claim
