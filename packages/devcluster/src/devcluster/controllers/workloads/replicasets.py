"""ReplicaSets: a requested number of pods of one template."""

from devcluster.controllers.workloads.base import WorkloadController, pod_from
from devcluster.controllers.workloads.ownership import Key, controller_of
from devcluster.controllers.workloads.replicas import (
    active,
    available,
    condition,
    going,
    in_order_of_removal,
    ready,
    seconds_to_available,
    terminating,
    with_condition,
    without_condition,
)
from devcluster.errors import ApiError
from devcluster.resources import REPLICA_SET, Obj
from devcluster.values.selectors import match_labels

AT_ONCE = 50
"""Pods made or removed before others get their turn."""


class ReplicaSetController(WorkloadController):
    kind = REPLICA_SET
    component = "replicaset-controller"

    async def reconcile(self, key: Key) -> float | None:
        found = self.api.store.get(REPLICA_SET, *key)
        if found is None:
            self.backoff.forget(key)
            return None
        pods, failure, again = self.claim(found), None, None
        missing = found["spec"]["replicas"] - sum(map(active, pods))
        if missing and not going(found):
            failure = self._manage(found, pods, missing)
            pods = self.parts.of(REPLICA_SET, found)
        if failure:
            again = self.backoff.failed(key)
        else:
            self.backoff.forget(key)
        self.api.set_status(REPLICA_SET, found, next_status(found, pods, failure))
        return again or seconds_to_available(pods, found["spec"].get("minReadySeconds", 0))

    def _manage(self, found: Obj, pods: list[Obj], missing: int) -> ApiError | None:
        """Create missing pods, or remove superfluous ones. Return the refusal that stopped it, if any."""
        for _ in range(min(missing, AT_ONCE)):
            try:
                self.make_pod(found, pod_from(REPLICA_SET, found, found["spec"]["template"]))
            except ApiError as error:
                return None if self.emptying(found) else error
        if missing < 0:
            working = [p for p in pods if active(p)]
            for pod in in_order_of_removal(working, self._related(found, pods))[: min(-missing, AT_ONCE)]:
                self.remove_pod(found, pod)
        return None

    def _related(self, found: Obj, pods: list[Obj]) -> list[Obj]:
        """Return the pods of all ReplicaSets of the same owner."""
        owner = controller_of(found)
        if owner is None:
            return pods
        related = []
        for other in self.api.store.each(REPLICA_SET, found["metadata"]["namespace"]):
            if (controller_of(other) or {}).get("uid") == owner["uid"]:
                related += self.parts.of(REPLICA_SET, other)
        return related


def next_status(found: Obj, pods: list[Obj], failure: ApiError | None) -> Obj:
    spec, old = found["spec"], found.get("status", {})
    working = [p for p in pods if active(p)]
    well = [p for p in working if ready(p)]
    labels = {"matchLabels": spec["template"]["metadata"].get("labels") or {}}
    conditions = without_condition(old.get("conditions", []), "ReplicaFailure")
    if failure:
        told = condition("ReplicaFailure", "True", "FailedCreate", failure.message)
        conditions = with_condition(old.get("conditions", []), told)
    counts = {
        "fullyLabeledReplicas": sum(match_labels(labels, p["metadata"].get("labels") or {}) for p in working),
        "readyReplicas": len(well),
        "availableReplicas": sum(available(p, spec.get("minReadySeconds", 0)) for p in well),
    }
    return {
        "replicas": len(working),
        **{k: v for k, v in counts.items() if v},
        "terminatingReplicas": sum(terminating(p) for p in pods),
        "observedGeneration": found["metadata"]["generation"],
        **({"conditions": conditions} if conditions else {}),
    }
