"""ResourceQuota status: the present use of each limited namespace."""

from collections.abc import Iterable

from devcluster.controllers.base import Controller
from devcluster.resources import EVENT, RESOURCE_QUOTA
from devcluster.rules.quota import used
from devcluster.store import Change


class QuotaController(Controller[str]):
    def keys(self, change: Change) -> Iterable[str]:
        namespace = change.obj["metadata"].get("namespace", "")
        if namespace and change.kind is not EVENT and any(self.api.store.each(RESOURCE_QUOTA, namespace)):
            yield namespace

    async def reconcile(self, key: str) -> float | None:
        for quota in self.api.store.each(RESOURCE_QUOTA, key):
            status = {"hard": quota["spec"].get("hard", {}), "used": used(self.api.totals, quota)}
            self.api.set_status(RESOURCE_QUOTA, quota, status)
        return None
