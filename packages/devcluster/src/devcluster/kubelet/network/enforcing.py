"""Enforcement of NetworkPolicies: rules of pods that run are loaded again when what decides about them changes."""

from collections.abc import Iterable

from devcluster.api import Api
from devcluster.controllers.base import Controller
from devcluster.kubelet.network.podnetwork import GATEWAY
from devcluster.kubelet.network.policies import Objects, address_of, ruleset
from devcluster.network import PodNetwork
from devcluster.resources import NAMESPACE, NETWORK_POLICY, POD, Obj
from devcluster.store import Change

ALL = "all"
AGAIN_SECONDS = 1.0


class PolicyController(Controller[str]):
    """One key for all pods: who may reach a pod depends on all others."""

    def __init__(self, api: Api, network: PodNetwork):
        super().__init__(api)
        self._network = network
        network.rules = self.rules

    def keys(self, change: Change) -> Iterable[str]:
        if change.kind in (NETWORK_POLICY, NAMESPACE) or (
            change.kind is POD and _seen(change) != _seen_before(change)
        ):
            yield ALL

    async def reconcile(self, key: str) -> float | None:
        return None if await self._network.renew_rules() else AGAIN_SECONDS

    def rules(self, pod_uid: str) -> str | None:
        """Return the rules of a pod; None if the pod is gone."""
        store = self.api.store
        pods = store.each(POD)
        pod = next((p for p in pods if p["metadata"]["uid"] == pod_uid), None)
        if pod is None:
            return None
        spaces = {n["metadata"]["name"]: n["metadata"].get("labels") or {} for n in store.each(NAMESPACE)}
        return ruleset(pod, GATEWAY, Objects(store.each(NETWORK_POLICY), spaces, pods))


def _seen(change: Change) -> object:
    return None if change.type == "DELETED" else _facts(change.obj)


def _seen_before(change: Change) -> object:
    return _facts(change.old) if change.old else None


def _facts(pod: Obj) -> object:
    return address_of(pod), pod["metadata"].get("labels")
