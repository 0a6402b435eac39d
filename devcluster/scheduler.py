"""The scheduler: which node a pod gets, or why none, in the words of kube-scheduler 1.36."""

import socket
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from devcluster.api import Api, Writer
from devcluster.clock import now
from devcluster.controllers.base import Controller
from devcluster.events import Recorder
from devcluster.fitting import preference, selector_fits, term_fits, tolerated
from devcluster.qos import requests
from devcluster.quantity import milli
from devcluster.resources import NODE, POD, PV, PVC, STORAGE_CLASS, Obj
from devcluster.storage import SELECTED_NODE, claims_of
from devcluster.store import Change

Key = tuple[str, str]
ALL: Key = ("", "")
"""Stands for every pod that waits."""


@dataclass(frozen=True)
class Rejection:
    """Why one node does not take the pod; preempting others helps only where they hold what is short."""

    reasons: tuple[str, ...]
    others_hold_it: bool = False


class Scheduler(Controller[Key]):
    def __init__(self, api: Api):
        super().__init__(api)
        host = f"default-scheduler-{socket.gethostname()}"
        self._events = Recorder(api, "default-scheduler", host, "kube-scheduler")
        self._used: dict[str, Counter[str]] = {}
        self._held: dict[str, tuple[str, dict[str, int]]] = {}
        """What each bound pod holds, by uid: node and amounts."""
        self._pending: dict[Key, None] = {}
        self._woken = False

    def keys(self, change: Change) -> Iterable[Key]:
        meta = change.obj["metadata"]
        if change.kind is POD:
            self._count(change)
            key = meta["namespace"], meta["name"]
            if change.type != "DELETED" and _wants_node(change.obj):
                if change.type == "ADDED":
                    self._pending[key] = None
                    yield key
                return
            self._pending.pop(key, None)
            if not (change.type == "DELETED" or _ended(change.obj)):
                return
        elif change.kind not in (NODE, PVC, PV, STORAGE_CLASS):
            return
        if self._pending and not self._woken:
            self._woken = True
            self.add_later(ALL, 0.05)

    def _count(self, change: Change) -> None:
        """Keep the sums of what bound pods hold."""
        uid, node = change.obj["metadata"]["uid"], change.obj["spec"].get("nodeName", "")
        holds = bool(node) and change.type != "DELETED" and not _ended(change.obj)
        if holds and uid not in self._held:
            amounts = requests(change.obj["spec"])
            self._held[uid] = node, amounts
            self._used.setdefault(node, Counter()).update(amounts)
        elif not holds and uid in self._held:
            held_on, amounts = self._held.pop(uid)
            self._used[held_on].subtract(amounts)

    async def reconcile(self, key: Key) -> float | None:
        if key == ALL:
            self._woken = False
            for waiting in list(self._pending):
                self.add(waiting)
            return None
        pod = self.api.store.get(POD, *key)
        if pod is None or not _wants_node(pod):
            return None
        self._schedule(pod)
        return None

    def _schedule(self, pod: Obj) -> None:
        nodes = list(self.api.store.all(NODE))
        if blocked := self._blocked_by_claims(pod):
            self._refuse(pod, f"0/{len(nodes)} nodes are available: {blocked}. not found")
            return
        if not nodes:
            self._refuse(pod, "no nodes available to schedule pods")
            return
        rejections: list[Rejection] = []
        fitting: list[Obj] = []
        asked = requests(pod["spec"])
        for node in nodes:
            rejection = self._rejection(pod, node, asked)
            if rejection is None:
                fitting.append(node)
            else:
                rejections.append(rejection)
        if not fitting:
            self._refuse(pod, explain(len(nodes), rejections))
            return
        best = max(fitting, key=lambda n: self._score(pod, n, asked))
        self._place(pod, best["metadata"]["name"])

    def _claims(self, pod: Obj) -> list[tuple[str, Obj | None]]:
        namespace = pod["metadata"]["namespace"]
        return [(name, self.api.store.get(PVC, namespace, name)) for name in claims_of(pod)]

    def _waits_for_node(self, claim: Obj) -> bool:
        found = self.api.store.get(STORAGE_CLASS, "", claim["spec"].get("storageClassName") or "")
        return found is not None and found["volumeBindingMode"] == "WaitForFirstConsumer"

    def _blocked_by_claims(self, pod: Obj) -> str:
        for name, claim in self._claims(pod):
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if "deletionTimestamp" in claim["metadata"]:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if claim["status"].get("phase") != "Bound" and not self._waits_for_node(claim):
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def _rejection(self, pod: Obj, node: Obj, asked: dict[str, int]) -> Rejection | None:
        """The first filter that refuses the node, in kube-scheduler's order."""
        spec = pod["spec"]
        if node["spec"].get("unschedulable") and not tolerated(
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, spec
        ):
            return Rejection(("node(s) were unschedulable",))
        for taint in node["spec"].get("taints", []):
            if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerated(taint, spec):
                return Rejection(
                    (f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}",)
                )
        if not selector_fits(spec, node):
            return Rejection(("node(s) didn't match Pod's node affinity/selector",))
        if short := self._short_of(node, asked):
            return short
        for _, claim in self._claims(pod):
            if claim and not self._volume_reaches(claim, node):
                return Rejection(("node(s) didn't match PersistentVolume's node affinity",))
        return None

    def _short_of(self, node: Obj, asked: dict[str, int]) -> Rejection | None:
        allocatable = node["status"].get("allocatable", {})
        used = self._used.get(node["metadata"]["name"], Counter())
        short, never = [], False
        for name, amount in sorted(asked.items(), key=lambda item: item[0] != "pods"):
            total = milli(allocatable.get(name, "0"))
            if amount and amount + used.get(name, 0) > total:
                short.append("Too many pods" if name == "pods" else f"Insufficient {name}")
                never = never or amount > total
        return Rejection(tuple(short), others_hold_it=not never) if short else None

    def _volume_reaches(self, claim: Obj, node: Obj) -> bool:
        volume = self.api.store.get(PV, "", claim["spec"].get("volumeName") or "")
        if volume is None:
            selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
            return selected in (None, node["metadata"]["name"])
        terms = (volume["spec"].get("nodeAffinity") or {}).get("required", {}).get("nodeSelectorTerms")
        return not terms or any(term_fits(t, node) for t in terms)

    def _score(self, pod: Obj, node: Obj, asked: dict[str, int]) -> tuple[float, float]:
        """Preferred affinity first, then the emptier node."""
        allocatable = node["status"].get("allocatable", {})
        used = self._used.get(node["metadata"]["name"], Counter())
        free = []
        for name, amount in asked.items():
            total = milli(allocatable.get(name, "0"))
            if total:
                free.append(1 - (used.get(name, 0) + amount) / total)
        # A node with GPUs is the last choice of a pod that asks for none.
        spared = -1.0 if any("/" in n for n in allocatable) and not any("/" in n for n in asked) else 0.0
        return float(preference(pod["spec"], node)), spared + (sum(free) / len(free) if free else 0.0)

    def _place(self, pod: Obj, node: str) -> None:
        """Bind, or first have the claims that wait for a node made on this one."""
        waiting = [c for _, c in self._claims(pod) if c and c["status"].get("phase") != "Bound"]
        for claim in waiting:
            self._select(claim, node)
        if waiting:
            return  # their binding wakes the pod again
        meta = pod["metadata"]
        bound = self.api.bind(pod, node)
        message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
        self._events.scheduling(POD, bound, "Normal", "Scheduled", message, "Binding")

    def _select(self, claim: Obj, node: str) -> None:
        def annotate(obj: Obj) -> Obj:
            obj["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node
            return obj

        meta = claim["metadata"]
        self.api.update(PVC, meta["namespace"], meta["name"], annotate, Writer("kube-scheduler"))

    def _refuse(self, pod: Obj, why: str) -> None:
        """The condition and the event carry the same words; repeats are not told again."""
        conditions = pod["status"].get("conditions", [])
        if any(c["type"] == "PodScheduled" and c.get("message") == why for c in conditions):
            return
        known: Obj = next((c for c in conditions if c["type"] == "PodScheduled"), {})
        refused = {
            "type": "PodScheduled",
            "observedGeneration": pod["metadata"]["generation"],
            "status": "False",
        }
        refused |= {"lastProbeTime": None, "lastTransitionTime": known.get("lastTransitionTime", now())}
        refused |= {"reason": "Unschedulable", "message": why}
        others = [c for c in conditions if c["type"] != "PodScheduled"]
        status = pod["status"] | {"conditions": [*others, refused]}
        told = self.api.set_status(POD, pod, status, "kube-scheduler")
        self._events.scheduling(POD, told or pod, "Warning", "FailedScheduling", why, "Scheduling")


def explain(nodes: int, rejections: list[Rejection]) -> str:
    """`0/N nodes are available: …` with counts, and what preemption would do."""
    counts = Counter(reason for r in rejections for reason in r.reasons)
    reasons = ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items()))
    helped = Counter(
        "No preemption victims found for incoming pod"
        if r.others_hold_it
        else "Preemption is not helpful for scheduling"
        for r in rejections
    )
    preemption = ", ".join(sorted(f"{n} {reason}" for reason, n in helped.items()))
    head = f"0/{nodes} nodes are available: "
    return f"{head}{reasons}. no new claims to deallocate, preemption: {head}{preemption}."


def _wants_node(pod: Obj) -> bool:
    return (
        not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
        and pod["spec"].get("schedulerName") == "default-scheduler"
        and not pod["spec"].get("schedulingGates")
        and not _ended(pod)
    )


def _ended(pod: Obj) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
