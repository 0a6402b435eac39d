"""What quotas tell the room above, sent inside the transaction that changes the claim."""

from django.dispatch import Signal

claim_admitted = Signal()  # claim: Claim
claim_waits = Signal()  # claim: Claim; its reason or place became another
claim_to_stop = Signal()  # claim: Claim, code: str; it must give its units back
claim_released = Signal()  # claim: Claim
