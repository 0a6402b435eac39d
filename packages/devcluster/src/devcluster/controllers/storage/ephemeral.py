"""Claims that a pod brings along in `ephemeral`: made for it, and owned by it, so that they end with it."""

from collections.abc import Iterable

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.errors import ApiError
from devcluster.events import Recorder
from devcluster.resources import POD, PVC, Obj
from devcluster.storage import claim_name, ended
from devcluster.store import Change

WRITER = Writer(CONTROLLER)


class EphemeralController(Controller[tuple[str, str]]):
    """Controller of such claims, with namespace and name of pods as keys."""

    def __init__(self, api: Api):
        super().__init__(api)
        self._events = Recorder(api, "ephemeral_volume")

    def keys(self, change: Change) -> Iterable[tuple[str, str]]:
        meta = change.obj["metadata"]
        if change.kind is POD and change.type == "ADDED" and _templates(change.obj):
            yield meta["namespace"], meta["name"]

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        namespace, name = key
        pod = self.api.store.get(POD, namespace, name)
        if pod is None or ended(pod) or "deletionTimestamp" in pod["metadata"]:
            return None
        for claim, template in _templates(pod).items():
            try:
                if self.api.store.get(PVC, namespace, claim) is None:
                    self.api.create(PVC, namespace, _claim(pod, claim, template), WRITER)
            except ApiError as error:
                message = f"ephemeral volume {claim}: create PVC {claim}: {error}"
                self._events.event(POD, pod, "Warning", "FailedBinding", message)
                return 1.0
        return None


def _templates(pod: Obj) -> dict[str, Obj]:
    volumes = pod["spec"].get("volumes") or []
    return {claim_name(pod, v): v["ephemeral"]["volumeClaimTemplate"] for v in volumes if "ephemeral" in v}


def _claim(pod: Obj, name: str, template: Obj) -> Obj:
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
    }
    owner |= {"controller": True, "blockOwnerDeletion": True}
    meta = {**(template.get("metadata") or {}), "name": name, "ownerReferences": [owner]}
    return {"metadata": meta, "spec": template["spec"]}
