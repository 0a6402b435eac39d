"""Reading of a PVC: objects in, facts for the volume's row out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusters import explain
from clusters.quantities import parse
from clusters.storage.classes import Class
from storage.models import Phase, Volume

Object = Mapping[str, Any]
MIB = 2**20
LONGEST_RAW = 2000


@dataclass(frozen=True)
class Facts:
    phase: Phase
    size_mib: int = 0
    problem: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def read(volume: Volume, claim: Object, found: Class | None, events: Sequence[Object] = ()) -> Facts:
    """Return what the volume's row is to say, apart from the bin."""
    status = claim.get("status") or {}
    size = in_mib((status.get("capacity") or {}).get("storage"))
    if claim["metadata"].get("deletionTimestamp"):
        data = {"claim": claim["metadata"]["name"], "volume": volume.bound_to}
        return Facts(Phase.PENDING, size, "volume_deleted", data)
    if status.get("phase") == "Lost":
        return Facts(Phase.FAILED, volume.size_mib, "volume_lost", {"volume": volume.bound_to})
    if status.get("phase") != "Bound":
        problem, data = _why_unbound(events)
        binds_later = found is not None and found.binds_first and not problem
        return Facts(Phase.READY if binds_later else Phase.PENDING, 0, problem, data)
    if size >= volume.requested_mib:
        return Facts(Phase.READY, size)
    return Facts(Phase.GROWING, size, *_why_small(claim))


def _why_unbound(events: Sequence[Object]) -> tuple[str, dict[str, Any]]:
    warnings = [event for event in events if event.get("type") == "Warning"]
    if not warnings:
        return "", {}
    newest = max(warnings, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return explained(str(newest.get("message", "")))


def _why_small(claim: Object) -> tuple[str, dict[str, Any]]:
    """Return why it has not grown yet; nothing if that is under way."""
    status = claim["status"]
    conditions = {one["type"]: one for one in status.get("conditions") or () if one.get("status") == "True"}
    failed = conditions.get("ControllerResizeError") or conditions.get("NodeResizeError")
    if failed is not None or growth_failed(claim):
        return "growth_failed", {"raw": str((failed or {}).get("message", ""))[:LONGEST_RAW]}
    if "FileSystemResizePending" in conditions:
        return "grows_at_next_start", {}
    return "", {}


def growth_failed(claim: Object) -> bool:
    """Return True if the driver said that it cannot give the requested size. A smaller one may be requested then."""
    states = (claim.get("status") or {}).get("allocatedResourceStatuses") or {}
    conditions = (claim.get("status") or {}).get("conditions") or ()
    has_error = any(
        one["type"] in ("ControllerResizeError", "NodeResizeError") and one.get("status") == "True"
        for one in conditions
    )
    return has_error or str(states.get("storage", "")).endswith("Infeasible")


def size_to_ask(volume: Volume, claim: Object) -> int | None:
    """Return the size in MiB that the PVC has to ask for now; None if it asks for the right one, or cannot be changed:
    Kubernetes grows no unbound PVC."""
    if (claim.get("status") or {}).get("phase") != "Bound":
        return None
    asked = in_mib(claim["spec"]["resources"]["requests"]["storage"])
    is_lowered = volume.requested_mib < asked and growth_failed(claim)
    return volume.requested_mib if volume.requested_mib > asked or is_lowered else None


def explained(message: str) -> tuple[str, dict[str, Any]]:
    """Return the cause of a text of the cluster, and its data with the text itself."""
    found = explain.diagnose("volume", message)
    return found.code, {"raw": message[:LONGEST_RAW], **found.data}


def in_mib(quantity: str | None) -> int:
    """Return a Kubernetes quantity in whole MiB, rounded down; 0 for none, or one that cannot be read."""
    try:
        return parse("storage", quantity) // MIB if quantity else 0
    except ValueError:
        return 0
