"""Simulated cluster in memory, step by step: finalizers, names that can be taken once, pods that come up and end.

A real API takes seconds for what this does in microseconds. Any call can be made to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import count
from typing import Any

from clusters.errors import ClusterRefused

Object = dict[str, Any]
Objects = list[Object]
Key = tuple[str, str, str]


class PlayedApi:
    """Stand-in for clusters.api.Api. `before_call` may raise what a network or a kill would."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.before_call: Callable[[], None] = lambda: None
        self.changed: Callable[[Object], None] = lambda body: None
        self._numbers = count(1)

    # --- calls by Berth

    def get(self, kind: str, namespace: str | None, name: str) -> Object | None:
        self.before_call()
        return deepcopy(self.objects.get((kind, namespace or "", name)))

    def list(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Objects:
        self.before_call()
        return [
            deepcopy(body)
            for (of_kind, of_namespace, _), body in self.objects.items()
            if of_kind == kind
            and of_namespace == (namespace or "")
            and (labels or {}).items() <= body["metadata"].get("labels", {}).items()
        ]

    def apply(self, body: Object) -> Object:
        self.before_call()
        body = deepcopy(body)
        metadata = body["metadata"]
        key = (body["kind"], metadata.get("namespace", ""), metadata["name"])
        there = self.objects.get(key)
        uid = metadata.get("uid")
        if uid and (there is None or there["metadata"]["uid"] != uid):
            raise ClusterRefused(409, "Conflict", f"uid mismatch: the provided object specified uid {uid}")
        if there is None:
            metadata["uid"] = f"uid-{next(self._numbers)}"
            self.put(body)
        elif not there["metadata"].get("deletionTimestamp"):
            kept = {k: there["metadata"][k] for k in ("uid", "finalizers") if k in there["metadata"]}
            self.put({**there, **body, "metadata": {**metadata, **kept}})
        return deepcopy(self.objects[key])

    def create(self, body: Object) -> Object:
        self.before_call()
        body = deepcopy(body)
        metadata = body["metadata"]
        key = (body["kind"], metadata.get("namespace", ""), metadata["name"])
        if key in self.objects:
            raise ClusterRefused(409, "AlreadyExists", f'{body["kind"]} "{key[2]}" already exists')
        metadata["uid"] = f"uid-{next(self._numbers)}"
        if body["kind"] == "Pod":
            body["status"] = {"phase": "Pending"}
        self.put(body)
        return deepcopy(self.objects[key])

    def delete(
        self,
        kind: str,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        propagation: str = "Background",
        grace_seconds: int | None = None,
    ) -> bool:
        self.before_call()
        body = self.objects.get((kind, namespace or "", name))
        if body is None or uid not in (None, body["metadata"]["uid"]):
            return False
        self.mark_deleted(body)
        return True

    def json_patch(self, kind: str, namespace: str | None, name: str, operations: Objects) -> Object | None:
        self.before_call()
        body = self.objects.get((kind, namespace or "", name))
        if body is None:
            return None
        changed = deepcopy(body)
        for operation in operations:
            self._patch(changed, **operation)
        self.put(changed)
        return changed

    def _patch(self, body: Any, op: str, path: str, value: Any = None) -> None:
        *way, last = path.strip("/").split("/")
        for name in way:
            body = body.get(name, {})
        try:
            if op == "test" and (body[int(last)] if isinstance(body, list) else body[last]) != value:
                raise KeyError(path)
            if op == "remove":
                del body[int(last)]
            elif op == "add":
                body[last] = value
        except LookupError:
            raise ClusterRefused(422, "Invalid", "the server rejected our request due to an error") from None

    def merge_patch(self, kind: str, namespace: str | None, name: str, body: Object) -> Object | None:
        """Patch labels, annotations and the reclaim policy: nothing else is ever patched so."""
        self.before_call()
        there = self.objects.get((kind, namespace or "", name))
        if there is None:
            return None
        if "spec" in body:
            there["spec"].update(body["spec"])
        for part in ("labels", "annotations"):
            merged = there["metadata"].get(part, {}) | body.get("metadata", {}).get(part, {})
            there["metadata"][part] = {name: value for name, value in merged.items() if value is not None}
        return deepcopy(there)

    # --- actions of the cluster

    def put(self, body: Object) -> None:
        metadata = body["metadata"]
        key = (body["kind"], metadata.get("namespace", ""), metadata["name"])
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.objects.pop(key, None)
        else:
            self.objects[key] = body
        self.changed(body)

    def mark_deleted(self, body: Object) -> None:
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.put(body)

    def of(self, *kinds: str) -> Objects:
        return [body for (kind, _, _), body in list(self.objects.items()) if kind in kinds]

    def step(self) -> bool:
        """Let every controller and node make one step. Return True if anything changed."""
        steps = [self._bind, self._run_pods, self._give_address]
        return sum(step() for step in steps) > 0

    def settle(self) -> None:
        """Let the cluster make all its steps."""
        while self.step():
            pass

    def _bind(self) -> bool:
        unbound = [c for c in self.of("PersistentVolumeClaim") if "status" not in c]
        for claim in unbound:
            metadata = claim["metadata"]
            volume = claim["spec"].setdefault("volumeName", f"pv-{metadata['uid']}")
            there = self.objects.get(("PersistentVolume", "", volume))
            if there is not None and there["spec"]["claimRef"]["uid"]:
                continue  # it is still bound to another claim
            reference = {name: metadata[name] for name in ("namespace", "name", "uid")}
            spec = there["spec"] if there else {}
            spec["claimRef"] = reference
            self.put({"kind": "PersistentVolume", "metadata": {"name": volume, "uid": volume}, "spec": spec})
            claim["status"] = {"phase": "Bound"}
            self.put(claim)
        return bool(unbound)

    def _run_pods(self) -> bool:
        return sum(self._run(pod) for pod in self.of("Pod")) > 0

    def _run(self, pod: Object) -> bool:
        status, placed = pod["status"], "nodeName" in pod["spec"]
        if status["phase"] in ("Failed", "Succeeded"):
            return False
        if pod["metadata"].get("deletionTimestamp"):
            if not placed:
                return False
            self.end_pod(pod, "")
        elif not placed:
            pod["spec"]["nodeName"] = "gpu-1"
            self.put(pod)
        elif status["phase"] == "Pending":
            status["phase"] = "Running"
            state: Object = {"running": {}}
            status["containerStatuses"] = [{"name": "workspace", "state": state, "imageID": "i"}]
            self.put(pod)
        elif not status.get("conditions"):
            status["conditions"] = [{"type": "Ready", "status": "True"}]
            self.put(pod)
        else:
            return False
        return True

    def end_pod(self, pod: Object, reason: str) -> None:
        pod["status"] = {"phase": "Failed", "reason": reason}
        self.put(pod)

    def _give_address(self) -> bool:
        bare = [service for service in self.of("Service") if "status" not in service]
        for service in bare:
            service["status"] = {"loadBalancer": {"ingress": [{"ip": "127.64.0.5"}]}}
            self.put(service)
        return bool(bare)
