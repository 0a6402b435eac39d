"""Base of all workload controllers: claims parts by a selector, and makes pods from a template."""

from collections.abc import Iterable

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.controllers.workloads.backoff import Backoff
from devcluster.controllers.workloads.ownership import Controlled, Key, control_by, controller_of, key_of
from devcluster.controllers.workloads.replicas import active, going
from devcluster.errors import ApiError
from devcluster.events import Recorder
from devcluster.resources import NAMESPACE, POD, Kind, Obj, kind_of
from devcluster.store import Change, clone
from devcluster.values.selectors import match_labels

FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 0.005, 64.0


class WorkloadController(Controller[Key]):
    """Base of workload controllers. A subclass reconciles one workload; `claim` returns the parts that it controls."""

    kind: Kind
    part: Kind = POD
    """The kind of what it controls."""
    component: str

    def __init__(self, api: Api):
        super().__init__(api)
        self.parts = Controlled(api.store, self.part)
        self.events = Recorder(api, self.component)
        self.backoff = Backoff(FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS)

    def keys(self, change: Change) -> Iterable[Key]:
        if change.kind is self.kind:
            yield key_of(change.obj)
        elif change.kind is self.part:
            for obj in (change.obj, change.old):
                if (
                    obj
                    and (ref := controller_of(obj))
                    and kind_of(ref["apiVersion"], ref["kind"]) is self.kind
                ):
                    yield obj["metadata"]["namespace"], ref["name"]
            if change.type != "DELETED" and not controller_of(change.obj) and _claimable_anew(change):
                yield from self._interested(change.obj)

    def _interested(self, orphan: Obj) -> Iterable[Key]:
        for workload in self.api.store.each(self.kind, orphan["metadata"]["namespace"]):
            if self.selects(workload, orphan):
                yield key_of(workload)

    def selects(self, workload: Obj, part: Obj) -> bool:
        return match_labels(workload["spec"]["selector"], part["metadata"].get("labels") or {})

    def claim(self, workload: Obj) -> list[Obj]:
        """Adopt orphans that it selects, release parts that it no longer selects. Return the parts that it controls."""
        parts = self.parts.of(self.kind, workload)
        if going(workload):
            return parts
        kept = []
        for part in parts:
            if self.selects(workload, part) or going(part):
                kept.append(part)
            else:
                self._refer(part, None)
        for orphan in self.parts.orphans(workload["metadata"]["namespace"], workload["spec"]["selector"]):
            adoptable = active(orphan) if self.part is POD else not going(orphan)
            if adoptable and self.selects(workload, orphan):
                kept.append(self._refer(orphan, control_by(self.kind, workload)))
        return kept

    def _refer(self, part: Obj, controller: Obj | None) -> Obj:
        def change(obj: Obj) -> Obj:
            others = [r for r in obj["metadata"].get("ownerReferences", []) if not r.get("controller")]
            obj["metadata"]["ownerReferences"] = [*others, controller] if controller else others
            return obj

        return self.api.update(self.part, *key_of(part), change, Writer(CONTROLLER))

    def make_pod(self, workload: Obj, pod: Obj) -> None:
        """Create a pod and record an event. Record a refusal too, and raise it."""
        try:
            made = self.api.create(POD, workload["metadata"]["namespace"], pod, Writer(CONTROLLER))
        except ApiError as error:
            if not self.emptying(workload):
                message = f"Error creating: {error.message}"
                self.events.event(self.kind, workload, "Warning", "FailedCreate", message)
            raise
        message = f"Created pod: {made['metadata']['name']}"
        self.events.event(self.kind, workload, "Normal", "SuccessfulCreate", message)

    def remove_pod(self, workload: Obj, pod: Obj) -> None:
        self.api.try_delete(POD, pod)
        message = f"Deleted pod: {pod['metadata']['name']}"
        self.events.event(self.kind, workload, "Normal", "SuccessfulDelete", message)

    def emptying(self, workload: Obj) -> bool:
        """Return True if the namespace is being deleted: creations are refused, and nobody needs their events."""
        namespace = self.api.store.get(NAMESPACE, "", workload["metadata"]["namespace"])
        return namespace is None or going(namespace)


def _claimable_anew(change: Change) -> bool:
    """Return True if an orphan can have a new owner: it is new, was released, or has other labels."""
    old = change.old
    return (
        old is None
        or controller_of(old) is not None
        or old["metadata"].get("labels") != change.obj["metadata"].get("labels")
    )


def pod_from(kind: Kind, workload: Obj, template: Obj) -> Obj:
    """Return a pod of this template with its labels, annotations and finalizers."""
    template = clone(template)
    meta = {
        k: v for k, v in template["metadata"].items() if k in ("labels", "annotations", "finalizers") and v
    }
    meta |= {"generateName": f"{workload['metadata']['name']}-"}
    meta |= {"ownerReferences": [control_by(kind, workload)]}
    return {"metadata": meta, "spec": template["spec"]}
