"""Reports of the simulated kubelets: node registration, lease renewals and node status.

A real kubelet renews its lease every 10 seconds. 500 of them would keep a core busy, so many nodes share a fixed number
of renewals a second; the controller that waits for renewals asks the fleet which nodes are silent, not the leases.
"""

import asyncio
import contextlib

from devcluster.api import Api, Writer
from devcluster.errors import ApiError
from devcluster.events import Recorder
from devcluster.fleet import DELETED, LEASES, Fleet, PlayedNode
from devcluster.kubelet.containers.images import Images
from devcluster.kubelet.nodes.node_status import status, transition_event, without_heartbeat
from devcluster.nodes import KUBELET
from devcluster.resources import LEASE, NODE, Obj
from devcluster.store import Change
from devcluster.values.clock import age_seconds, now, now_micro

RENEW_SECONDS = 10.0
RENEWALS_PER_SECOND = 4.0
"""At most so many, over all nodes."""
REPORT_SECONDS = 300
"""A status that did not change is posted again after this long."""
_ANNOTATIONS = {
    "node.alpha.kubernetes.io/ttl": "0",
    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
}


class Reports:
    def __init__(self, api: Api, fleet: Fleet, images: Images):
        self._api, self._fleet, self._images = api, fleet, images
        self._writer = Writer(KUBELET)
        self._renew_seconds = max(RENEW_SECONDS, len(list(fleet)) / RENEWALS_PER_SECOND)
        self._recorders: dict[str, Recorder] = {}

    def start(self) -> None:
        """Create or change the nodes as the file says; delete nodes whose kubelet the file no longer names."""
        for node in self._fleet:
            self._register(node)
        for old in self._api.store.each(NODE):
            if self._fleet.get(old["metadata"]["name"]) is None and _had_kubelet(old):
                self._api.try_delete(NODE, old)
        self._fleet.listen(self._ailing)
        self._api.store.listen(self._heard)

    def _register(self, node: PlayedNode) -> None:
        found = self._api.store.get(NODE, "", node.name)
        meta = node.body["metadata"]
        annotations = _ANNOTATIONS | node.annotations
        if found is None:
            body = node.body | {"metadata": meta | {"annotations": annotations}}
            body["status"] = status(node, node.body["status"], self._images.on(node.name), now())
            self._api.create(NODE, "", body, self._writer)
        else:

            def change(old: Obj) -> Obj:
                old["metadata"].setdefault("labels", {}).update(meta["labels"])
                old["metadata"].setdefault("annotations", {}).update(annotations)
                return old

            self._api.update(NODE, "", node.name, change, self._writer)
            self._report(node)
        self._renew(node)

    def _ailing(self, node: PlayedNode) -> None:
        found = self._api.store.get(NODE, "", node.name)
        if node.is_in(DELETED) and found:
            self._api.try_delete(NODE, found)
        elif not node.silent and found is None:
            self._register(node)
        else:
            self._speak(node)

    def _heard(self, change: Change) -> None:
        """Report at once on a Node that somebody else created again."""
        if change.kind is NODE and change.type == "ADDED":
            node = self._fleet.get(change.obj["metadata"]["name"])
            if node and not change.obj["status"].get("conditions"):
                asyncio.get_running_loop().call_soon(self._speak, node)

    async def run(self) -> None:
        """Report for each node in turn, for ever."""
        while True:
            nodes = list(self._fleet)
            for node in nodes:
                await asyncio.sleep(self._renew_seconds / len(nodes))
                self._speak(node)
            if not nodes:
                await asyncio.Event().wait()

    def _speak(self, node: PlayedNode) -> None:
        if not node.silent and self._api.store.get(NODE, "", node.name):
            with contextlib.suppress(ApiError):
                self._report(node)
                self._renew(node)

    def _report(self, node: PlayedNode) -> None:
        """Post the status if it changed, or if the last report is old."""
        self._announce(node)
        found = self._api.get(NODE, "", node.name)
        old, at = found["status"], now()
        new = status(node, old, self._images.on(node.name), at)
        beats = [c["lastHeartbeatTime"] for c in old.get("conditions", []) if c["type"] == "Ready"]
        fresh = (
            bool(beats) and age_seconds(beats[0] or found["metadata"]["creationTimestamp"]) < REPORT_SECONDS
        )
        if fresh and without_heartbeat(old) == without_heartbeat(new):
            return
        self._api.set_status(NODE, found, new, KUBELET)
        before = {c["type"]: c["status"] for c in old.get("conditions", [])}
        for condition in new["conditions"]:
            if condition["status"] != before.get(condition["type"]):
                self._tell(node, transition_event(condition))

    def _announce(self, node: PlayedNode) -> None:
        """Update the Node's annotations that plugins write, if they changed."""

        def change(old: Obj) -> Obj:
            old["metadata"].setdefault("annotations", {}).update(node.annotations)
            return old

        found = self._api.get(NODE, "", node.name)["metadata"].get("annotations") or {}
        if not node.annotations.items() <= found.items():
            self._api.update(NODE, "", node.name, change, self._writer)

    def _tell(self, node: PlayedNode, reason: str) -> None:
        recorder = self._recorders.get(node.name)
        if recorder is None:
            recorder = self._recorders[node.name] = Recorder(self._api, KUBELET, node.name, KUBELET)
        ref = {"kind": "Node", "name": node.name, "apiVersion": "v1"}
        recorder.about(ref, "Normal", reason, f"Node {node.name} status is now: {reason}")

    def _renew(self, node: PlayedNode) -> None:
        found = self._api.get(NODE, "", node.name)
        spec: Obj = {
            "holderIdentity": node.name,
            "leaseDurationSeconds": int(4 * self._renew_seconds),
            "renewTime": now_micro(),
        }
        if self._api.store.get(LEASE, LEASES, node.name):
            self._api.update(LEASE, LEASES, node.name, lambda old: old | {"spec": spec}, self._writer)
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": found["metadata"]["uid"]}
        meta = {"name": node.name, "ownerReferences": [owner]}
        self._api.create(LEASE, LEASES, {"metadata": meta, "spec": spec}, self._writer)


def _had_kubelet(node: Obj) -> bool:
    return any(entry.get("manager") == KUBELET for entry in node["metadata"].get("managedFields", []))
