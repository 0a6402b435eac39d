"""Eviction: a deletion that a PodDisruptionBudget can refuse for now."""

from devcluster.api import Api, DeleteOptions, Writer
from devcluster.errors import ApiError
from devcluster.resources import POD, POD_DISRUPTION_BUDGET, Obj
from devcluster.values.clock import now
from devcluster.values.selectors import match_labels

_TOO_MANY = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
PROCESSED_SECONDS = 10
"""When to ask again while a budget is new."""


def evict(api: Api, namespace: str, name: str, options: DeleteOptions, manager: str) -> None:
    pod = api.get(POD, namespace, name)
    if not _is_free(pod):
        budgets = [b for b in api.store.all(POD_DISRUPTION_BUDGET, namespace) if _covers(b, pod)]
        if len(budgets) > 1:
            raise ApiError(500, "", _TOO_MANY)
        for budget in budgets:
            if not _is_unwell_and_may_go(budget, pod):
                _check(budget)
                if not options.dry_run:
                    _spend(api, budget, name)
    if not options.dry_run:
        _tell(api, pod, manager)
    api.delete(POD, namespace, name, options)


def _is_free(pod: Obj) -> bool:
    """Return True for a pod that does not run yet or no longer: no budget applies to it."""
    phase = pod.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _covers(budget: Obj, pod: Obj) -> bool:
    return match_labels(budget["spec"].get("selector"), pod["metadata"].get("labels") or {})


def _is_unwell_and_may_go(budget: Obj, pod: Obj) -> bool:
    conditions = pod["status"].get("conditions", [])
    if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    needed, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    return bool(0 < needed <= has)


def _check(budget: Obj) -> None:
    name, status = budget["metadata"]["name"], budget.get("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        raise _refusal(
            f"The disruption budget {name} is still being processed by the server.", PROCESSED_SECONDS
        )
    if status["disruptionsAllowed"] > 0:
        return
    why = f"The disruption budget {name} does not allow evicting pods currently"
    if status["currentHealthy"] <= status["desiredHealthy"]:
        needs, has = status["desiredHealthy"], status["currentHealthy"]
        why = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    raise _refusal(why)


def _refusal(why: str, retry_seconds: int = 0) -> ApiError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    details: Obj = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    headers = {}
    if retry_seconds:
        details["retryAfterSeconds"] = retry_seconds
        headers["Retry-After"] = str(retry_seconds)
    return ApiError(429, "TooManyRequests", message, details, headers)


def _spend(api: Api, budget: Obj, pod: str) -> None:
    status = budget["status"]
    spent = {"disruptionsAllowed": status["disruptionsAllowed"] - 1}
    spent |= {"disruptedPods": status.get("disruptedPods", {}) | {pod: now()}}
    api.set_status(POD_DISRUPTION_BUDGET, budget, status | spent)


def _tell(api: Api, pod: Obj, manager: str) -> None:
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now(),
    }
    target |= {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}

    def change(obj: Obj) -> Obj:
        others = [c for c in obj["status"].get("conditions", []) if c["type"] != "DisruptionTarget"]
        return obj | {"status": obj["status"] | {"conditions": [*others, target]}}

    meta = pod["metadata"]
    api.update(POD, meta["namespace"], meta["name"], change, Writer(manager, subresource="status"))
