"""Models of drift, of reports about nodes and GPUs, and of the troubles derived from them."""

from .drift import Finding, Look, What
from .figures import BusyDay, Figure, Track
from .gpus import AgentState, AgentToken, FailedStart, NodeLoad, Suspicion, Trouble, XidEvent
from .isolation import IsolationProof
from .validation import Validation

__all__ = [
    "AgentState",
    "AgentToken",
    "BusyDay",
    "FailedStart",
    "Figure",
    "Finding",
    "IsolationProof",
    "Look",
    "NodeLoad",
    "Suspicion",
    "Track",
    "Trouble",
    "Validation",
    "What",
    "XidEvent",
]
