"""Choice of a volume for a claim, as Kubernetes' volume controller and scheduler choose it. Pure."""

from collections.abc import Callable, Iterable

from devcluster.resources import Obj
from devcluster.storage import requested, size_of
from devcluster.values.quantity import milli
from devcluster.values.selectors import match_labels


def bound_to(volume: Obj, claim: Obj) -> bool:
    """Return True if the volume is bound to the claim, or reserved for it by name."""
    ref, meta = volume["spec"].get("claimRef") or {}, claim["metadata"]
    named = (ref.get("namespace"), ref.get("name")) == (meta["namespace"], meta["name"])
    return named and ref.get("uid") in (None, "", meta["uid"])


def best_match(
    claim: Obj, volumes: Iterable[Obj], on_node: Callable[[Obj], bool] | None = None, delayed: bool = False
) -> Obj | None:
    """Return the volume bound to the claim; else the smallest free one that fits, with the fewest access modes.

    `on_node` tests if the node that the scheduler considers reaches a volume. Without it, a claim that is `delayed`
    until its first use gets only a volume that is reserved for it.
    """
    free: list[Obj] = []
    for volume in volumes:
        if not _holds(volume, claim):
            continue
        reached = on_node is None or on_node(volume)
        if bound_to(volume, claim):
            return volume if reached else None
        if reached and _is_free(volume, claim) and not (delayed and on_node is None):
            free.append(volume)
    return min(free, key=_nearness, default=None)


def _nearness(volume: Obj) -> tuple[int, int]:
    return len(volume["spec"]["accessModes"]), milli(size_of(volume))


def _holds(volume: Obj, claim: Obj) -> bool:
    spec = volume["spec"]
    return (
        (not spec.get("claimRef") or bound_to(volume, claim))
        and "deletionTimestamp" not in volume["metadata"]
        and milli(size_of(volume)) >= milli(requested(claim))
        and _mode(volume) == _mode(claim)
        and _has_access_modes(volume, claim)
    )


def _is_free(volume: Obj, claim: Obj) -> bool:
    return (
        volume.get("status", {}).get("phase") == "Available"
        and _class(volume) == _class(claim)
        and match_labels(claim["spec"].get("selector") or {}, volume["metadata"].get("labels") or {})
    )


def mismatch(volume: Obj, claim: Obj) -> str:
    """Return why a claim cannot have the volume that it names; empty if it can."""
    if "deletionTimestamp" in volume["metadata"]:
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if milli(size_of(volume)) < milli(requested(claim)):
        return "requested PV is too small"
    if _class(volume) != _class(claim):
        return "storageClassName does not match"
    if _mode(volume) != _mode(claim):
        return "incompatible volumeMode"
    if not _has_access_modes(volume, claim):
        return "incompatible accessMode"
    return ""


def _class(obj: Obj) -> str:
    return obj["spec"].get("storageClassName") or ""


def _mode(obj: Obj) -> str:
    return obj["spec"].get("volumeMode") or "Filesystem"


def _has_access_modes(volume: Obj, claim: Obj) -> bool:
    return set(claim["spec"]["accessModes"]) <= set(volume["spec"]["accessModes"])
