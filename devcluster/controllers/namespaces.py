"""Namespaces: a default service account in each, and the emptying of those that are being deleted."""

from collections.abc import Iterable

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.resources import CONFIG_MAP, KINDS, NAMESPACE, POD, PVC, SERVICE_ACCOUNT
from devcluster.store import Change

ROOT_CA = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the"
    " internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of"
    " Kubernetes clusters."
)


class NamespaceController(Controller[str]):
    def __init__(self, api: Api, certificate: str):
        super().__init__(api)
        self._certificate = certificate
        # At once rather than from the queue: a client may create a pod right after its namespace.
        api.store.listen(self._furnish)

    def keys(self, change: Change) -> Iterable[str]:
        if change.kind is NAMESPACE and change.type != "DELETED" and _terminating(change):
            yield change.obj["metadata"]["name"]
        elif change.type == "DELETED" and (name := change.obj["metadata"].get("namespace")):
            found = self.api.store.get(NAMESPACE, "", name)
            if found and "deletionTimestamp" in found["metadata"]:
                yield name

    def _furnish(self, change: Change) -> None:
        """What every namespace has: an account, and the certificate by which the API is known."""
        if change.kind is NAMESPACE and change.type == "ADDED":
            name = change.obj["metadata"]["name"]
            self.api.create(SERVICE_ACCOUNT, name, {"metadata": {"name": "default"}}, Writer(""))
            meta = {"name": "kube-root-ca.crt", "annotations": {"kubernetes.io/description": ROOT_CA}}
            body = {"metadata": meta, "data": {"ca.crt": self._certificate}}
            self.api.create(CONFIG_MAP, name, body, Writer(CONTROLLER))

    async def reconcile(self, key: str) -> float | None:
        namespace = self.api.store.get(NAMESPACE, "", key)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return None
        left = 0
        # Pods first: what they hold on to (claims) can only go after them.
        for kind in sorted((k for k in KINDS if k.namespaced), key=lambda k: (k is not POD, k is PVC)):
            for obj in self.api.store.each(kind, key):
                left += 1
                if "deletionTimestamp" not in obj["metadata"]:
                    self.api.try_delete(kind, obj, propagation="Background")
        if any(self.api.store.each(k, key) for k in KINDS if k.namespaced):
            return 1.0
        writer = Writer(CONTROLLER, subresource="finalize")
        self.api.update(NAMESPACE, "", key, lambda o: o | {"spec": {}}, writer)
        return None


def _terminating(change: Change) -> bool:
    return "deletionTimestamp" in change.obj["metadata"]
