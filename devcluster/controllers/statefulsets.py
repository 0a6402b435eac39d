"""StatefulSets: numbered pods, one after the other, and never two under one name."""

import hashlib
import json
from collections.abc import Iterable

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.errors import ApiError
from devcluster.events import Recorder
from devcluster.resources import POD, PVC, STATEFUL_SET, Obj
from devcluster.store import Change, clone

Key = tuple[str, str]
FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 0.005, 64.0
_SAFE = "bcdfghjklmnpqrstvwxz2456789"


class StatefulSetController(Controller[Key]):
    def __init__(self, api: Api):
        super().__init__(api)
        self._events = Recorder(api, "statefulset-controller")
        self._failures: dict[str, int] = {}
        """Creations refused in a row, by uid of the set."""
        self._names: dict[str, set[str]] = {}
        """Names of the pods that a set controls, by its uid."""

    def keys(self, change: Change) -> Iterable[Key]:
        meta = change.obj["metadata"]
        if change.kind is STATEFUL_SET:
            yield meta["namespace"], meta["name"]
        elif change.kind is POD:
            for ref in meta.get("ownerReferences", []):
                if ref["kind"] == "StatefulSet" and ref.get("controller"):
                    self._note(ref["uid"], meta["name"], change.type != "DELETED")
                    yield meta["namespace"], ref["name"]

    def _note(self, uid: str, name: str, there: bool) -> None:
        names = self._names.setdefault(uid, set())
        if there:
            names.add(name)
        else:
            names.discard(name)
        if not names:
            del self._names[uid]

    async def reconcile(self, key: Key) -> float | None:
        found = self.api.store.get(STATEFUL_SET, *key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        again = self._advance(found)
        self._write_status(found)
        return again

    def _pods(self, workload: Obj) -> dict[int, Obj]:
        pods = {}
        meta = workload["metadata"]
        for name in self._names.get(meta["uid"], ()):
            pod = self.api.store.get(POD, meta["namespace"], name)
            ordinal = name.removeprefix(f"{meta['name']}-")
            if pod and ordinal.isdigit() and _controlled(pod, workload):
                pods[int(ordinal)] = pod
        return pods

    def _advance(self, workload: Obj) -> float | None:
        """One step: make, replace or remove at most one pod (all of them where the policy is Parallel)."""
        spec, pods = workload["spec"], self._pods(workload)
        in_order = spec["podManagementPolicy"] == "OrderedReady"
        first = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(first, first + spec["replicas"])
        for ordinal in wanted:
            pod = pods.get(ordinal)
            if pod is None:
                again = self._create(workload, ordinal)
                if in_order or again is not None:
                    return again
                continue
            if not _going(pod):
                self._replace_ended(workload, pod)
            if in_order and not _ready(pod):
                return None  # its deletion or readiness calls again
        for ordinal in sorted(set(pods) - set(wanted), reverse=True):
            self._delete(workload, pods[ordinal])
            if in_order:
                return None
        self._roll(workload, pods, wanted)
        return None

    def _roll(self, workload: Obj, pods: dict[int, Obj], wanted: range) -> None:
        strategy = workload["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        partition = strategy.get("rollingUpdate", {}).get("partition", 0)
        for ordinal in sorted((o for o in wanted if o >= partition), reverse=True):
            pod = pods.get(ordinal)
            if pod is None or _going(pod):
                return
            if pod["metadata"].get("labels", {}).get("controller-revision-hash") != revision(workload):
                self._delete(workload, pod)
                return
            if not _ready(pod):
                return

    def _replace_ended(self, workload: Obj, pod: Obj) -> None:
        phase = pod["status"].get("phase")
        if phase not in ("Failed", "Succeeded"):
            return
        meta = workload["metadata"]
        word = "failed" if phase == "Failed" else "terminated"
        level = "Warning" if phase == "Failed" else "Normal"
        message = f"StatefulSet {meta['namespace']}/{meta['name']} is recreating {word} Pod {pod['metadata']['name']}"
        self._events.event(STATEFUL_SET, workload, level, f"Recreating{word.title()}Pod", message)
        self._delete(workload, pod)

    def _delete(self, workload: Obj, pod: Obj) -> None:
        if _going(pod):
            return
        self.api.try_delete(POD, pod)
        message = (
            f"delete Pod {pod['metadata']['name']} in StatefulSet {workload['metadata']['name']} successful"
        )
        self._events.event(STATEFUL_SET, workload, "Normal", "SuccessfulDelete", message)

    def _create(self, workload: Obj, ordinal: int) -> float | None:
        meta = workload["metadata"]
        pod = new_pod(workload, ordinal)
        name = pod["metadata"]["name"]
        try:
            self._claims(workload, ordinal)
            self.api.create(POD, meta["namespace"], pod, Writer(CONTROLLER))
        except ApiError as error:
            message = f"Create Pod {name} in StatefulSet {meta['name']} failed error: {error.message}"
            self._events.event(STATEFUL_SET, workload, "Warning", "FailedCreate", message)
            failures = self._failures[meta["uid"]] = self._failures.get(meta["uid"], 0) + 1
            return float(min(FIRST_BACKOFF_SECONDS * 2 ** min(failures, 20), LONGEST_BACKOFF_SECONDS))
        self._failures.pop(meta["uid"], None)
        message = f"create Pod {name} in StatefulSet {meta['name']} successful"
        self._events.event(STATEFUL_SET, workload, "Normal", "SuccessfulCreate", message)
        return None

    def _claims(self, workload: Obj, ordinal: int) -> None:
        meta = workload["metadata"]
        for template in workload["spec"].get("volumeClaimTemplates", []):
            name = f"{template['metadata']['name']}-{meta['name']}-{ordinal}"
            if self.api.store.get(PVC, meta["namespace"], name) is None:
                labels = (workload["spec"]["selector"].get("matchLabels") or {}) | template["metadata"].get(
                    "labels", {}
                )
                body = {"metadata": {"name": name, "labels": labels}, "spec": template["spec"]}
                self.api.create(PVC, meta["namespace"], body, Writer(CONTROLLER))

    def _write_status(self, workload: Obj) -> None:
        pods = list(self._pods(workload).values())
        update = revision(workload)
        current = (workload.get("status") or {}).get("currentRevision") or update
        updated = [
            p for p in pods if p["metadata"].get("labels", {}).get("controller-revision-hash") == update
        ]
        if len(updated) == len(pods):
            current = update
        on_current = [
            p for p in pods if p["metadata"].get("labels", {}).get("controller-revision-hash") == current
        ]
        ready = sum(_ready(p) for p in pods)
        counts = {
            "readyReplicas": ready,
            "currentReplicas": len([p for p in on_current if not _going(p)]),
            "updatedReplicas": len([p for p in updated if not _going(p)]),
        }
        status = {
            "observedGeneration": workload["metadata"]["generation"],
            "replicas": len(pods),
            **{k: v for k, v in counts.items() if v},
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": 0,
            "availableReplicas": ready,
        }
        self.api.set_status(STATEFUL_SET, workload, status)


def _controlled(pod: Obj, workload: Obj) -> bool:
    refs = pod["metadata"].get("ownerReferences", [])
    return any(r["uid"] == workload["metadata"]["uid"] and r.get("controller") for r in refs)


def _going(pod: Obj) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _ready(pod: Obj) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return not _going(pod) and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def revision(workload: Obj) -> str:
    """A name for this version of the pod template."""
    template = json.dumps(workload["spec"]["template"], sort_keys=True)
    digest = hashlib.sha256(template.encode()).digest()
    return f"{workload['metadata']['name']}-" + "".join(_SAFE[b % len(_SAFE)] for b in digest[:10])


def new_pod(workload: Obj, ordinal: int) -> Obj:
    """The pod of this number, from the template: labels, annotations and finalizers are copied."""
    meta, spec = workload["metadata"], workload["spec"]
    template = clone(spec["template"])
    name = f"{meta['name']}-{ordinal}"
    labels = (template["metadata"].get("labels") or {}) | {
        "apps.kubernetes.io/pod-index": str(ordinal),
        "controller-revision-hash": revision(workload),
        "statefulset.kubernetes.io/pod-name": name,
    }
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": meta["name"], "uid": meta["uid"]}
    owner |= {"controller": True, "blockOwnerDeletion": True}
    kept = {k: template["metadata"][k] for k in ("annotations", "finalizers") if template["metadata"].get(k)}
    pod_meta = {
        "name": name,
        "generateName": f"{meta['name']}-",
        "labels": labels,
        "ownerReferences": [owner],
        **kept,
    }
    pod_spec = template["spec"] | {"hostname": name}
    if spec.get("serviceName"):
        pod_spec["subdomain"] = spec["serviceName"]
    claims = {t["metadata"]["name"] for t in spec.get("volumeClaimTemplates", [])}
    volumes = [v for v in pod_spec.get("volumes", []) if v["name"] not in claims]
    volumes += [{"name": c, "persistentVolumeClaim": {"claimName": f"{c}-{name}"}} for c in sorted(claims)]
    if volumes:
        pod_spec["volumes"] = volumes
    return {"metadata": pod_meta, "spec": pod_spec}
