"""Decisions on the queue of a pool: pure functions over a snapshot (`state.py`)."""

from .decide import decide, kept_now, may_last_until, plan
from .reclaim import BOOKING_BEGINS, OWNER_WAITS
from .state import (
    BACK_OFF_MOST,
    RECLAIM_GRACE,
    Admitted,
    Booked,
    Card,
    Decisions,
    Limits,
    NodeState,
    PersonUse,
    PoolState,
    Reason,
    Reclaim,
    Room,
    Run,
    TenantQuota,
    Waiting,
    Waits,
    as_gpus,
)
from .why import never, too_large

__all__ = [
    "BACK_OFF_MOST",
    "BOOKING_BEGINS",
    "OWNER_WAITS",
    "RECLAIM_GRACE",
    "Admitted",
    "Booked",
    "Card",
    "Decisions",
    "Limits",
    "NodeState",
    "PersonUse",
    "PoolState",
    "Reason",
    "Reclaim",
    "Room",
    "Run",
    "TenantQuota",
    "Waiting",
    "Waits",
    "as_gpus",
    "decide",
    "kept_now",
    "may_last_until",
    "never",
    "plan",
    "too_large",
]
