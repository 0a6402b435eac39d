"""StatefulSets: numbered pods, one after the other, and never two of one name.

A pod on a lost node keeps its name until somebody deletes it by force; its successor is made only after that.
"""

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.workloads.base import WorkloadController
from devcluster.controllers.workloads.ownership import Key, key_of
from devcluster.controllers.workloads.replicas import going, phase, seconds_to_available
from devcluster.controllers.workloads.revisions import Revisions, template_of
from devcluster.controllers.workloads.stateful_pods import (
    claim_name,
    claim_owners,
    is_stale,
    keeps_current,
    new_claim,
    new_pod,
    next_status,
    next_step,
    ordinal_of,
    revision_of,
    templates,
)
from devcluster.errors import ApiError
from devcluster.resources import POD, PVC, STATEFUL_SET, Obj

AT_ONCE = 50
"""Pods made in one go where the order does not matter."""
STALE_SECONDS = 1.0
"""How often a claim that still has to go is looked at again."""


class StatefulSetController(WorkloadController):
    kind = STATEFUL_SET
    component = "statefulset-controller"

    def __init__(self, api: Api):
        super().__init__(api)
        self._revisions = Revisions(api, STATEFUL_SET)

    def selects(self, workload: Obj, part: Obj) -> bool:
        return ordinal_of(workload, part) is not None and super().selects(workload, part)

    async def reconcile(self, key: Key) -> float | None:
        found = self.api.store.get(STATEFUL_SET, *key)
        if found is None:
            self.backoff.forget(key)
            return None
        self.claim(found)
        update = self._revisions.latest(found)
        kept = {r["metadata"]["name"]: r for r in self._revisions.of(found)}
        current = kept.get(found["status"].get("currentRevision", ""), update)
        again = None
        if not going(found):
            again = self._advance(key, found, current, update)
        pods = list(self._pods(found).values())
        names = [r["metadata"]["name"] for r in (current, update)]
        self.api.set_status(STATEFUL_SET, found, next_status(found, pods, *names))
        self._revisions.forget(found, {*names, *map(revision_of, pods)})
        return again or seconds_to_available(pods, found["spec"].get("minReadySeconds", 0))

    def _pods(self, found: Obj) -> dict[int, Obj]:
        pods = ((ordinal_of(found, p), p) for p in self.parts.of(STATEFUL_SET, found))
        return {ordinal: pod for ordinal, pod in pods if ordinal is not None}

    def _advance(self, key: Key, found: Obj, current: Obj, update: Obj) -> float | None:
        """Take one step. Return the seconds to wait if it was refused."""
        pods = self._pods(found)
        self._keep_claims(found, pods)
        step = next_step(found, pods, update["metadata"]["name"])
        for ordinal in step.create[:AT_ONCE]:
            if self._is_stale(found, ordinal):
                return STALE_SECONDS
            try:
                self._create(found, ordinal, current if keeps_current(found, ordinal) else update)
            except ApiError:
                return self.backoff.failed(key)
        self.backoff.forget(key)
        for pod in step.delete:
            self.api.try_delete(POD, pod)
            self._tell(found, "Delete", pod["metadata"]["name"])
        return None

    def _create(self, found: Obj, ordinal: int, revision: Obj) -> None:
        meta = found["metadata"]
        pod = new_pod(found, ordinal, template_of(revision), revision["metadata"]["name"])
        name = pod["metadata"]["name"]
        try:
            self._make_claims(found, ordinal)
            made = self.api.create(POD, meta["namespace"], pod, Writer(CONTROLLER))
        except ApiError as error:
            if error.reason != "AlreadyExists" and not self.emptying(found):
                self._tell(found, "Create", name, error)
            raise
        self._tell(found, "Create", name)
        self._own_claims(found, made)

    def _tell(self, found: Obj, verb: str, pod: str, error: ApiError | None = None) -> None:
        about = f"{verb} Pod {pod} in StatefulSet {found['metadata']['name']}"
        if error:
            message = f"{about} failed error: {error.message}"
            self.events.event(STATEFUL_SET, found, "Warning", f"Failed{verb}", message)
        else:
            self.events.event(STATEFUL_SET, found, "Normal", f"Successful{verb}", f"{about} successful")

    # --- Claims

    def _keep_claims(self, found: Obj, pods: dict[int, Obj]) -> None:
        """Create missing claims of waiting pods, and set the owners whose deletion deletes a claim."""
        if not templates(found):
            return
        for ordinal, pod in pods.items():
            if phase(pod) == "Pending" and not going(pod):
                self._make_claims(found, ordinal)
            self._own_claims(found, pod)

    def _make_claims(self, found: Obj, ordinal: int) -> None:
        meta = found["metadata"]
        for template in templates(found):
            body = new_claim(found, template, ordinal)
            name = body["metadata"]["name"]
            there = self.api.store.get(PVC, meta["namespace"], name)
            if there is None:
                self.api.create(PVC, meta["namespace"], body, Writer(CONTROLLER))
                message = (
                    f"Create Claim {name} Pod {meta['name']}-{ordinal} in StatefulSet {meta['name']} success"
                )
                self.events.event(STATEFUL_SET, found, "Normal", "SuccessfulCreate", message)
            elif going(there):
                raise ApiError(409, "Conflict", f"pvc {name} is being deleted")

    def _own_claims(self, found: Obj, pod: Obj) -> None:
        ordinal = ordinal_of(found, pod)
        for claim in self._claims(found, ordinal) if ordinal is not None else ():
            owners = claim_owners(found, pod, claim)
            if owners != claim["metadata"].get("ownerReferences", []):

                def change(obj: Obj, owners: list[Obj] = owners) -> Obj:
                    return obj | {"metadata": obj["metadata"] | {"ownerReferences": owners}}

                self.api.update(PVC, *key_of(claim), change, Writer(CONTROLLER))

    def _claims(self, found: Obj, ordinal: int) -> list[Obj]:
        namespace = found["metadata"]["namespace"]
        names = (claim_name(found, t, ordinal) for t in templates(found))
        return [c for name in names if (c := self.api.store.get(PVC, namespace, name))]

    def _is_stale(self, found: Obj, ordinal: int) -> bool:
        if found["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"] == "Retain":
            return False
        name = f"{found['metadata']['name']}-{ordinal}"
        return any(is_stale(name, claim) for claim in self._claims(found, ordinal))
