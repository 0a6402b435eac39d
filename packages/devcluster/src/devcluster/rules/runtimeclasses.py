"""RuntimeClasses: their validation, and their effect on pods that name them."""

from collections.abc import Iterator

from devcluster.errors import Cause, forbidden, invalid_value, required
from devcluster.resources import KINDS, POD, Obj
from devcluster.store import Store
from devcluster.values.names import LABEL, NOT_A_LABEL

_KIND = next(kind for kind in KINDS if kind.kind == "RuntimeClass")


def validate(obj: Obj) -> Iterator[Cause]:
    handler = obj.get("handler", "")
    if not handler:
        yield required("handler")
    elif "." in handler:
        yield invalid_value("handler", handler, "must not contain dots")
    elif not LABEL.fullmatch(handler):
        yield invalid_value("handler", handler, NOT_A_LABEL)


def admit(store: Store, pod: Obj) -> None:
    """Add to the pod its class's node selector and tolerations, and the overhead of its runtime."""
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    if not (wanted := spec.get("runtimeClassName")):
        if spec.get("overhead"):
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbidden(POD, name, why)
        return
    if (found := store.get(_KIND, "", wanted)) is None:
        raise forbidden(POD, name, f'pod rejected: RuntimeClass "{wanted}" not found')
    overhead = (found.get("overhead") or {}).get("podFixed") or {}
    if spec.get("overhead", overhead) != overhead:
        why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise forbidden(POD, name, why)
    if overhead:
        spec["overhead"] = dict(overhead)
    scheduling = found.get("scheduling") or {}
    for label, value in (scheduling.get("nodeSelector") or {}).items():
        own = spec.setdefault("nodeSelector", {}).setdefault(label, value)
        if own != value:
            told = f"runtimeClass.scheduling.nodeSelector[{label}] = {value}; pod.spec.nodeSelector[{label}] = {own}"
            raise forbidden(POD, name, f"conflict: {told}")
    tolerations = spec.setdefault("tolerations", [])
    tolerations += [more for more in scheduling.get("tolerations") or [] if more not in tolerations]
