"""Volumes in scheduling: the nodes that a pod's claims allow, and the volumes of unbound claims on a node."""

from devcluster.api import Api, Writer
from devcluster.controllers.storage.binding import best_match
from devcluster.events import reference
from devcluster.resources import PV, PVC, STORAGE_CLASS, Obj
from devcluster.scheduling.fitting import term_fits
from devcluster.storage import FIRST_USE, SELECTED_NODE, claims_of
from devcluster.store import Change

ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NONE_THERE = "node(s) didn't find available persistent volumes to bind"
_WRITER = Writer("kube-scheduler")


class VolumeBinding:
    def __init__(self, api: Api):
        self._api = api
        self._open: set[str] = set()
        """Volumes that a claim may still get."""

    def note(self, change: Change) -> None:
        """Note whether a changed volume is free to bind."""
        name = change.obj["metadata"]["name"]
        if change.type == "DELETED" or change.obj.get("status", {}).get("phase") == "Bound":
            self._open.discard(name)
        else:
            self._open.add(name)

    def claims(self, pod: Obj) -> list[tuple[str, Obj | None]]:
        namespace = pod["metadata"]["namespace"]
        return [(name, self._api.store.get(PVC, namespace, name)) for name in claims_of(pod)]

    def blocked(self, pod: Obj) -> str:
        """Return why no node at all will do; empty if none is excluded so far."""
        for name, claim in self.claims(pod):
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if "deletionTimestamp" in claim["metadata"]:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if claim["status"].get("phase") == "Lost":
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{_volume(claim)}"'
            if not _is_bound(claim) and self._class(claim).get("volumeBindingMode") != FIRST_USE:
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def unreachable(self, pod: Obj, node: Obj) -> str:
        """Return why this node does not do; empty if it does."""
        taken: set[str] = set()
        for _, claim in self.claims(pod):
            volume = self._api.store.get(PV, "", _volume(claim)) if claim else None
            if volume and not _on_node(volume, node):
                return ELSEWHERE
            if claim and volume is None and not self._can_get(claim, node, taken):
                return NONE_THERE
        return ""

    def _can_get(self, claim: Obj, node: Obj, taken: set[str]) -> bool:
        if found := self._match(claim, node, taken):
            taken.add(found["metadata"]["name"])
            return True
        selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        made = not self._class(claim).get("provisioner", "").startswith("kubernetes.io/")
        return made and selected in (None, node["metadata"]["name"])

    def _match(self, claim: Obj, node: Obj, taken: set[str]) -> Obj | None:
        volumes = (self._api.store.get(PV, "", name) for name in sorted(self._open - taken))
        return best_match(claim, filter(None, volumes), lambda volume: _on_node(volume, node))

    def bind(self, pod: Obj, node: Obj) -> bool:
        """Give each unbound claim a volume, or a node for its provisioner. Return True if all were bound already."""
        waiting = [claim for _, claim in self.claims(pod) if claim and not _is_bound(claim)]
        taken: set[str] = set()
        for claim in waiting:
            if found := self._match(claim, node, taken):
                taken.add(found["metadata"]["name"])
                self._assign(found, claim)
            else:
                self._select(claim, node["metadata"]["name"])
        return not waiting

    def _assign(self, volume: Obj, claim: Obj) -> None:
        """Write the claim's name to the volume; the volume controller completes the binding."""

        def change(obj: Obj) -> Obj:
            if not obj["spec"].get("claimRef"):
                obj["metadata"].setdefault("annotations", {})["pv.kubernetes.io/bound-by-controller"] = "yes"
            obj["spec"]["claimRef"] = reference(PVC, claim)
            return obj

        self._api.update(PV, "", volume["metadata"]["name"], change, _WRITER)

    def _select(self, claim: Obj, node: str) -> None:
        def annotate(obj: Obj) -> Obj:
            obj["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node
            return obj

        meta = claim["metadata"]
        self._api.update(PVC, meta["namespace"], meta["name"], annotate, _WRITER)

    def _class(self, claim: Obj) -> Obj:
        return self._api.store.get(STORAGE_CLASS, "", claim["spec"].get("storageClassName") or "") or {}


def _volume(claim: Obj) -> str:
    return str(claim["spec"].get("volumeName") or "")


def _is_bound(claim: Obj) -> bool:
    return bool(claim["status"].get("phase") == "Bound")


def _on_node(volume: Obj, node: Obj) -> bool:
    terms = (volume["spec"].get("nodeAffinity") or {}).get("required", {}).get("nodeSelectorTerms")
    return not terms or any(term_fits(term, node) for term in terms)
