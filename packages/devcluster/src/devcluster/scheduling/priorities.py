"""Priority of a pod: of its PriorityClass, or of the default class; fixed when the pod is created."""

from devcluster.errors import forbidden
from devcluster.resources import POD, PRIORITY_CLASS, Obj
from devcluster.store import Store

SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
PREEMPT = "PreemptLowerPriority"


def admit(store: Store, pod: Obj) -> None:
    spec, name = pod["spec"], pod["metadata"]["name"]
    found = _class_of(store, spec)
    if found is None and spec.get("priorityClassName"):
        raise forbidden(POD, name, f"no PriorityClass with name {spec['priorityClassName']} was found")
    given = found or {}
    computed = {
        "priority": given.get("value", 0),
        "preemptionPolicy": given.get("preemptionPolicy", PREEMPT),
    }
    for member, what in (("priority", "integer value of priority"), ("preemptionPolicy", _POLICY)):
        if spec.get(member, computed[member]) != computed[member]:
            rule = "must not be provided in pod spec; priority admission controller computed"
            why = f"the {what} ({spec[member]}) {rule} {computed[member]} from the given PriorityClass name"
            raise forbidden(POD, name, why)
    if found:
        spec["priorityClassName"] = found["metadata"]["name"]
    spec |= computed


_POLICY = "string value of PreemptionPolicy"


def _class_of(store: Store, spec: Obj) -> Obj | None:
    if name := spec.get("priorityClassName"):
        return store.get(PRIORITY_CLASS, "", name)
    return next((c for c in store.all(PRIORITY_CLASS) if c.get("globalDefault")), None)
