"""Models of alerts, of drift, of reports about nodes and GPUs, and of the troubles derived from them."""

from .alerts import Alert, AlertDelivery, AlertMember, AlertPass, AlertRoute, Severity
from .drift import Finding, Look, What
from .figures import BusyDay, Figure, Track
from .gpus import AgentState, AgentToken, FailedStart, NodeLoad, Suspicion, Trouble, XidEvent
from .idle import IdleLook, IdlePolicy
from .isolation import IsolationProof
from .post_mortems import OomKill, PostMortem, PostMortemNote, SeenPod
from .validation import Validation

__all__ = [
    "AgentState",
    "AgentToken",
    "Alert",
    "AlertDelivery",
    "AlertMember",
    "AlertPass",
    "AlertRoute",
    "BusyDay",
    "FailedStart",
    "Figure",
    "Finding",
    "IdleLook",
    "IdlePolicy",
    "IsolationProof",
    "Look",
    "NodeLoad",
    "OomKill",
    "PostMortem",
    "PostMortemNote",
    "SeenPod",
    "Severity",
    "Suspicion",
    "Track",
    "Trouble",
    "Validation",
    "What",
    "XidEvent",
]
