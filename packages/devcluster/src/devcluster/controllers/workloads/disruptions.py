"""PodDisruptionBudgets: the number of covered pods that may be evicted now."""

import math
from collections.abc import Iterable

from devcluster.controllers.base import Controller
from devcluster.controllers.workloads.ownership import Key, controller_of, key_of
from devcluster.controllers.workloads.replicas import condition_of, going, ready
from devcluster.resources import DEPLOYMENT, POD, POD_DISRUPTION_BUDGET, Obj, kind_of
from devcluster.store import Change
from devcluster.values.clock import age_seconds, now
from devcluster.values.selectors import match_labels

DELETION_SECONDS = 120.0
"""How long an evicted pod is counted as gone although nobody has deleted it."""


class DisruptionController(Controller[Key]):
    def keys(self, change: Change) -> Iterable[Key]:
        if change.kind is POD_DISRUPTION_BUDGET and change.type != "DELETED":
            yield key_of(change.obj)
        elif change.kind is POD:
            for budget in self.api.store.each(POD_DISRUPTION_BUDGET, change.obj["metadata"]["namespace"]):
                if any(_covers(budget, pod) for pod in (change.obj, change.old) if pod):
                    yield key_of(budget)

    async def reconcile(self, key: Key) -> float | None:
        budget = self.api.store.get(POD_DISRUPTION_BUDGET, *key)
        if budget is None:
            return None
        pods = [p for p in self.api.store.each(POD, key[0]) if _covers(budget, p)]
        status = next_status(budget, pods, self._scale(pods))
        self.api.set_status(POD_DISRUPTION_BUDGET, budget, status)
        return DELETION_SECONDS if status.get("disruptedPods") else None

    def _scale(self, pods: list[Obj]) -> int:
        """Return the total replicas that the pods' controllers ask for."""
        replicas: dict[str, int] = {}
        for pod in pods:
            if (owner := self._controller(pod)) and (ref := controller_of(owner)):
                kind = kind_of(ref["apiVersion"], ref["kind"])
                if kind is DEPLOYMENT:
                    owner = self.api.store.get(DEPLOYMENT, pod["metadata"]["namespace"], ref["name"]) or owner
            if owner:
                replicas[owner["metadata"]["uid"]] = owner["spec"].get("replicas", 0)
        return sum(replicas.values())

    def _controller(self, pod: Obj) -> Obj | None:
        ref = controller_of(pod)
        kind = kind_of(ref["apiVersion"], ref["kind"]) if ref else None
        return self.api.store.get(kind, pod["metadata"]["namespace"], ref["name"]) if ref and kind else None


def _covers(budget: Obj, pod: Obj) -> bool:
    return match_labels(budget["spec"].get("selector"), pod["metadata"].get("labels") or {})


def next_status(budget: Obj, pods: list[Obj], scale: int) -> Obj:
    spec, old = budget["spec"], budget.get("status", {})
    expected, needed = needs(spec, len(pods), scale)
    staying = {p["metadata"]["name"] for p in pods if not going(p)}
    disrupted = {
        name: when
        for name, when in (old.get("disruptedPods") or {}).items()
        if name in staying and age_seconds(when) < DELETION_SECONDS
    }
    healthy = sum(ready(p) and not going(p) and p["metadata"]["name"] not in disrupted for p in pods)
    allowed = max(healthy - needed, 0) if expected else 0
    generation = budget["metadata"]["generation"]
    told = _told(condition_of(budget, "DisruptionAllowed"), allowed > 0, generation)
    status = {"observedGeneration": generation, "disruptedPods": disrupted, "disruptionsAllowed": allowed}
    status |= {"currentHealthy": healthy, "desiredHealthy": needed, "expectedPods": expected}
    return {k: v for k, v in status.items() if k != "disruptedPods" or v} | {"conditions": [told]}


def needs(spec: Obj, pods: int, scale: int) -> tuple[int, int]:
    """Return the number of expected pods, and of those that must be healthy."""
    if (most := spec.get("maxUnavailable")) is not None:
        return scale, max(scale - _share(most, scale), 0)
    least = spec.get("minAvailable", 0)
    return (pods, least) if isinstance(least, int) else (scale, _share(least, scale))


def _share(value: int | str, of: int) -> int:
    return value if isinstance(value, int) else math.ceil(int(value.removesuffix("%")) * of / 100)


def _told(old: Obj | None, allowed: bool, generation: int) -> Obj:
    status, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    since = old["lastTransitionTime"] if old and old["status"] == status else now()
    told = {"type": "DisruptionAllowed", "status": status, "observedGeneration": generation}
    return told | {"lastTransitionTime": since, "reason": reason, "message": ""}
