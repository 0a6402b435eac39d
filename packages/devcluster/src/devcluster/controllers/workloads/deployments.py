"""Deployments: a ReplicaSet for each version of the template, and the rollout from one to the next."""

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.workloads.base import WorkloadController
from devcluster.controllers.workloads.ownership import Controlled, Key, control_by
from devcluster.controllers.workloads.replicas import (
    condition_of,
    ended,
    going,
    template_hash,
    with_condition,
    without_condition,
)
from devcluster.controllers.workloads.rollouts import (
    DESIRED,
    HASH,
    MAX,
    NOT_COPIED,
    REVISION,
    REVISION_HISTORY,
    Sizes,
    availability,
    count,
    counts_of,
    find_new,
    first_size,
    is_complete,
    is_rolling,
    is_scaling,
    limits,
    next_sizes,
    progress,
    revision,
    same_template,
    scaled_sizes,
    seconds_to_deadline,
    size,
    surplus,
    told,
    with_progress,
)
from devcluster.errors import ApiError
from devcluster.resources import DEPLOYMENT, POD, REPLICA_SET, Obj
from devcluster.store import clone


class DeploymentController(WorkloadController):
    kind = DEPLOYMENT
    part = REPLICA_SET
    component = "deployment-controller"

    def __init__(self, api: Api):
        super().__init__(api)
        self._pods = Controlled(api.store, POD)

    async def reconcile(self, key: Key) -> float | None:
        found = self.api.store.get(DEPLOYMENT, *key)
        if found is None:
            self.backoff.forget(key)
            return None
        self.claim(found)
        if going(found):
            self._write_status(found, rolling_out=False)
            return None
        found = self._note_pause(found)
        try:
            self._advance(found)
        except ApiError:
            return self.backoff.failed(key)
        self.backoff.forget(key)
        found = self.api.store.get(DEPLOYMENT, *key) or found
        left = None if found["spec"].get("paused") else seconds_to_deadline(found)
        return left + 1 if left else None

    def _advance(self, found: Obj) -> None:
        new, old = self._replica_sets(found)
        if new is not None:
            new = self._renew(found, new, old)
        if found["spec"].get("paused") or is_scaling(found, [*old, *([new] if new else [])]):
            self._resize(found, scaled_sizes(found, new, old))
            if found["spec"].get("paused"):
                self._forget_history(found, old)
            self._write_status(found, rolling_out=False)
            return
        if is_rolling(found):
            new = new or self._create(found, old)
            sizes = next_sizes(found, new, old)
        else:
            sizes = self._recreated_sizes(found, new, old)
        self._resize(found, sizes)
        if not sizes and is_complete(found, found.get("status", {})):
            self._forget_history(found, old)
        self._write_status(found, rolling_out=True)

    def _replica_sets(self, found: Obj) -> tuple[Obj | None, list[Obj]]:
        """Return the ReplicaSet of the current template, if it exists, and all others."""
        everything = self.parts.of(DEPLOYMENT, found)
        new = find_new(found, everything)
        return new, [r for r in everything if r is not new]

    def _recreated_sizes(self, found: Obj, new: Obj | None, old: list[Obj]) -> Sizes:
        """Return the sizes for strategy Recreate: no new pods before all old ones are gone."""
        if any(map(size, old)):
            return {r["metadata"]["name"]: 0 for r in old if size(r)}
        running = (p for r in old for p in self._pods.of(REPLICA_SET, r))
        if count(old, "replicas") or any(not ended(p) for p in running):
            return {}
        new = new or self._create(found, old)
        replicas = found["spec"]["replicas"]
        return {} if size(new) == replicas else {new["metadata"]["name"]: replicas}

    # --- ReplicaSets

    def _create(self, found: Obj, old: list[Obj]) -> Obj:
        meta = found["metadata"]
        body = new_replica_set(found, first_size(found, old), str(max(map(revision, old), default=0) + 1))
        name = body["metadata"]["name"]
        there = self.api.store.get(REPLICA_SET, meta["namespace"], name)
        if there and not same_template(there["spec"]["template"], body["spec"]["template"]):
            collisions = found["status"].get("collisionCount", 0) + 1
            self.api.set_status(DEPLOYMENT, found, found["status"] | {"collisionCount": collisions})
        try:
            made = self.api.create(REPLICA_SET, meta["namespace"], body, Writer(CONTROLLER))
        except ApiError as error:
            message = f'Failed to create new replica set "{name}": {error.message}'
            if there is None and not self.emptying(found):
                self._say(found, told("Progressing", "False", "ReplicaSetCreateError", message))
                self.events.event(DEPLOYMENT, found, "Warning", "ReplicaSetCreateError", message)
            raise
        if size(made):
            message = f"Scaled up replica set {name} from 0 to {size(made)}"
            self.events.event(DEPLOYMENT, found, "Normal", "ScalingReplicaSet", message)
        created = told("Progressing", "True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        self._say(found, created, revision=body["metadata"]["annotations"][REVISION])
        return made

    def _renew(self, found: Obj, new: Obj, old: list[Obj]) -> Obj:
        """Update the current ReplicaSet's annotations; give one that was used before the latest revision again."""
        wanted = clone(new)
        annotate(wanted, found, max(map(revision, old), default=0) + 1)
        if delay := found["spec"].get("minReadySeconds"):
            wanted["spec"]["minReadySeconds"] = delay
        else:
            wanted["spec"].pop("minReadySeconds", None)
        namespace, name = new["metadata"]["namespace"], new["metadata"]["name"]
        new = self.api.update(REPLICA_SET, namespace, name, lambda _: wanted, Writer(CONTROLLER))
        condition = condition_of(self._fresh(found), "Progressing")
        message = f'Found new replica set "{name}"'
        progressing = None if condition else told("Progressing", "True", "FoundNewReplicaSet", message)
        self._say(found, progressing, revision=new["metadata"]["annotations"][REVISION])
        return new

    def _resize(self, found: Obj, sizes: Sizes) -> None:
        surge, _ = limits(found)
        replicas = found["spec"]["replicas"]
        for name, wanted in sizes.items():
            old = self.api.get(REPLICA_SET, found["metadata"]["namespace"], name)

            def change(obj: Obj, wanted: int = wanted) -> Obj:
                noted = {DESIRED: str(replicas), MAX: str(replicas + surge)}
                obj["metadata"]["annotations"] = (obj["metadata"].get("annotations") or {}) | noted
                return obj | {"spec": obj["spec"] | {"replicas": wanted}}

            self.api.update(REPLICA_SET, old["metadata"]["namespace"], name, change, Writer(CONTROLLER))
            if wanted != size(old):
                way = "up" if wanted > size(old) else "down"
                message = f"Scaled {way} replica set {name} from {size(old)} to {wanted}"
                self.events.event(DEPLOYMENT, found, "Normal", "ScalingReplicaSet", message)

    def _forget_history(self, found: Obj, old: list[Obj]) -> None:
        for replica_set in surplus(found, old):
            self.api.try_delete(REPLICA_SET, replica_set, propagation="Background")

    # --- Status

    def _fresh(self, found: Obj) -> Obj:
        meta = found["metadata"]
        return self.api.get(DEPLOYMENT, meta["namespace"], meta["name"])

    def _note_pause(self, found: Obj) -> Obj:
        """Record a pause or its end in the Progressing condition: no deadline runs during a pause."""
        old, paused = condition_of(found, "Progressing"), bool(found["spec"].get("paused"))
        reason = old["reason"] if old else ""
        if reason == "ProgressDeadlineExceeded" or paused == (reason == "DeploymentPaused"):
            return found
        word = "Paused" if paused else "Resumed"
        self._say(found, told("Progressing", "Unknown", f"Deployment{word}", f"Deployment is {word.lower()}"))
        return self._fresh(found)

    def _say(self, found: Obj, condition: Obj | None, revision: str = "") -> None:
        """Set a condition and the revision's annotation: both are written with the status."""

        def change(obj: Obj) -> Obj:
            conditions = obj["status"].get("conditions", [])
            if condition:
                obj["status"]["conditions"] = with_condition(conditions, condition)
            if revision:
                obj["metadata"].setdefault("annotations", {})[REVISION] = revision
            return obj

        meta = found["metadata"]
        writer = Writer(CONTROLLER, subresource="status")
        self.api.update(DEPLOYMENT, meta["namespace"], meta["name"], change, writer)

    def _write_status(self, found: Obj, rolling_out: bool) -> None:
        found = self._fresh(found)
        new, old = self._replica_sets(found)
        everything = [*old, new] if new else old
        status = counts_of(found, everything, new)
        conditions = found["status"].get("conditions", [])
        conditions = with_condition(conditions, availability(found, status.get("availableReplicas", 0)))
        if rolling_out:
            conditions = with_progress(conditions, progress(found, status, new))
            failures = [c for r in reversed(everything) if (c := condition_of(r, "ReplicaFailure"))]
            conditions = (
                with_condition(conditions, _times_of(failures[0]))
                if failures
                else without_condition(conditions, "ReplicaFailure")
            )
        self.api.set_status(DEPLOYMENT, found, status | {"conditions": conditions})


def _times_of(condition: Obj) -> Obj:
    """Return the times of a ReplicaSet's condition, which the Deployment repeats."""
    return condition | {"lastUpdateTime": condition["lastTransitionTime"]}


def annotate(replica_set: Obj, deployment: Obj, newest: int) -> None:
    """Copy the Deployment's annotations and the newest revision to the current ReplicaSet."""
    annotations = replica_set["metadata"].setdefault("annotations", {})
    given = deployment["metadata"].get("annotations") or {}
    annotations |= {k: v for k, v in given.items() if k not in NOT_COPIED}
    before = annotations.get(REVISION)
    if revision(replica_set) < newest:
        annotations[REVISION] = str(newest)
        if before:
            history = annotations.get(REVISION_HISTORY)
            annotations[REVISION_HISTORY] = f"{history},{before}" if history else before


def new_replica_set(deployment: Obj, replicas: int, revision: str) -> Obj:
    """Return a ReplicaSet of the Deployment's template, named by a hash of the template."""
    meta, spec = deployment["metadata"], deployment["spec"]
    template = clone(spec["template"])
    own = {HASH: template_hash(template, deployment["status"].get("collisionCount", 0))}
    template["metadata"]["labels"] = (template["metadata"].get("labels") or {}) | own
    selector = clone(spec["selector"])
    selector["matchLabels"] = (selector.get("matchLabels") or {}) | own
    given = {k: v for k, v in (meta.get("annotations") or {}).items() if k not in NOT_COPIED}
    sizes = {DESIRED: str(spec["replicas"]), MAX: str(spec["replicas"] + limits(deployment)[0])}
    delay = {"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}
    return {
        "metadata": {
            "name": f"{meta['name']}-{own[HASH]}",
            "labels": clone(template["metadata"]["labels"]),
            "annotations": given | sizes | {REVISION: revision},
            "ownerReferences": [control_by(DEPLOYMENT, deployment)],
        },
        "spec": {"replicas": replicas, **delay, "selector": selector, "template": template},
    }
