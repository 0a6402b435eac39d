"""Namespaces: the objects that each gets, and the deletion of their contents, pods first."""

from collections import Counter
from collections.abc import Iterable

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.controllers.workloads.replicas import condition, going
from devcluster.resources import CONFIG_MAP, KINDS, NAMESPACE, POD, SERVICE_ACCOUNT, Kind, Obj
from devcluster.store import Change
from devcluster.values.clock import age_seconds

ROOT_CA = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the"
    " internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of"
    " Kubernetes clusters."
)
NAMESPACED = [k for k in KINDS if k.namespaced]
QUIET_SECONDS = 5.0
"""What takes longer than this is told in conditions."""
AGAIN_SECONDS = 1.0
AT_ONCE = 100
"""Objects deleted before others get their turn."""
WELL = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""What is told of each condition where nothing is left of it."""


class NamespaceController(Controller[str]):
    def __init__(self, api: Api, certificate: str):
        super().__init__(api)
        self._certificate = certificate
        self._left: Counter[tuple[str, Kind]] = Counter()
        """How many objects of a kind are in a namespace."""
        # A listener, not the queue: a client may create a pod right after its namespace.
        api.store.listen(self._furnish)

    def keys(self, change: Change) -> Iterable[str]:
        meta = change.obj["metadata"]
        if change.kind is NAMESPACE and going(change.obj):
            yield meta["name"]
        elif name := meta.get("namespace"):
            self._left[name, change.kind] += {"ADDED": 1, "DELETED": -1}.get(change.type, 0)
            if change.type == "DELETED" and not self._left[name, change.kind]:
                del self._left[name, change.kind]
                yield name

    def _furnish(self, change: Change) -> None:
        """Create every namespace's default account, and the config map with the API's certificate."""
        if change.kind is NAMESPACE and change.type == "ADDED":
            name = change.obj["metadata"]["name"]
            self.api.create(SERVICE_ACCOUNT, name, {"metadata": {"name": "default"}}, Writer(""))
            meta = {"name": "kube-root-ca.crt", "annotations": {"kubernetes.io/description": ROOT_CA}}
            body = {"metadata": meta, "data": {"ca.crt": self._certificate}}
            self.api.create(CONFIG_MAP, name, body, Writer(CONTROLLER))

    async def reconcile(self, key: str) -> float | None:
        namespace = self.api.store.get(NAMESPACE, "", key)
        if namespace is None or not going(namespace):
            return None
        # What pods use goes after them.
        more = self._empty(key, [POD] if self.api.store.each(POD, key) else NAMESPACED)
        left = self._by_kind(key)
        if not left:
            writer = Writer(CONTROLLER, subresource="finalize")
            self.api.update(NAMESPACE, "", key, lambda o: o | {"spec": {}}, writer)
            return None
        if age_seconds(namespace["metadata"]["deletionTimestamp"]) >= QUIET_SECONDS:
            self._tell(namespace, conditions(left))
        return 0.0 if more else AGAIN_SECONDS

    def _empty(self, namespace: str, kinds: Iterable[Kind]) -> bool:
        """Delete some of the namespace's objects. Return True if there are more to delete at once."""
        wanted = [(k, o) for k in kinds for o in self.api.store.each(k, namespace) if not going(o)]
        for kind, obj in wanted[:AT_ONCE]:
            self.api.try_delete(kind, obj, propagation="Background")
        return len(wanted) > AT_ONCE

    def _by_kind(self, namespace: str) -> dict[Kind, list[Obj]]:
        return {k: found for k in NAMESPACED if (found := self.api.store.each(k, namespace))}

    def _tell(self, namespace: Obj, wanted: list[Obj]) -> None:
        old = {c["type"]: c for c in namespace["status"].get("conditions", [])}
        told = []
        for new in wanted:
            before = old.get(new["type"])
            same = before and before["status"] == new["status"]
            told.append(
                new | {"lastTransitionTime": before["lastTransitionTime"]} if before and same else new
            )
        self.api.set_status(NAMESPACE, namespace, namespace["status"] | {"conditions": told})


def conditions(left: dict[Kind, list[Obj]]) -> list[Obj]:
    """Return the conditions that show why a namespace still exists."""
    finalizers = Counter(
        f for found in left.values() for obj in found for f in obj["metadata"].get("finalizers", [])
    )
    remain = sorted(f"{k.plural}.{k.group} has {len(found)} resource instances" for k, found in left.items())
    held = sorted(f"{name} in {count} resource instances" for name, count in finalizers.items())
    some = {
        "NamespaceContentRemaining": (
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(remain)}" if remain else "",
        ),
        "NamespaceFinalizersRemaining": (
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {', '.join(held)}" if held else "",
        ),
    }
    told = []
    for name, well in WELL.items():
        reason, message = some.get(name, ("", ""))
        told.append(condition(name, "True", reason, message) if message else condition(name, "False", *well))
    return told
