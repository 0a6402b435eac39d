"""Scheduler: the node for a pod, or the reason why there is none, in the words of kube-scheduler 1.36."""

import socket
from collections.abc import Iterable

from devcluster.api import Api, Writer
from devcluster.controllers.base import Controller
from devcluster.disruption import disrupted
from devcluster.events import Recorder
from devcluster.resources import NAMESPACE, NODE, POD, PRIORITY_CLASS, PV, PVC, STORAGE_CLASS, Obj
from devcluster.scheduling import hami
from devcluster.scheduling.filters import Wishes
from devcluster.scheduling.fitting import NodeState, Rejection
from devcluster.scheduling.preemption import Preemption, explain
from devcluster.scheduling.priorities import SYSTEM
from devcluster.scheduling.spreading import REQUIRED, heeds_others, terms
from devcluster.scheduling.volumebinding import VolumeBinding
from devcluster.storage import claims_of
from devcluster.store import Change
from devcluster.values.clock import now
from devcluster.values.qos import requests

Key = tuple[str, str]
DEFAULT = "default-scheduler"
SCHEDULERS = (DEFAULT, hami.NAME)
ALL: Key = ("", "")
"""Stands for every pod that waits."""
ONE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by"
    " another pod"
)


def create_priority_classes(api: Api) -> None:
    """Create the two classes that every cluster has."""
    for name, value in SYSTEM.items():
        if api.store.get(PRIORITY_CLASS, "", name) is None:
            body = {"metadata": {"name": name}, "value": value}
            api.create(PRIORITY_CLASS, "", body, Writer("kube-apiserver"))


class Scheduler(Controller[Key]):
    def __init__(self, api: Api):
        super().__init__(api)
        self._recorders = {
            name: Recorder(api, name, f"{name}-{socket.gethostname()}", "kube-scheduler")
            for name in SCHEDULERS
        }
        self._states: dict[str, NodeState] = {}
        """What is on each node, also of one that is gone."""
        self._held: dict[str, str] = {}
        """The node of each bound pod, by uid."""
        self._volumes = VolumeBinding(api)
        self._pending: dict[Key, None] = {}
        self._heedful: dict[Key, None] = {}
        """Those of them to which it matters where others are."""
        self._woken = False
        self._first = 0
        """Of the nodes, the one to begin with: where not all are looked at, each has its turn."""

    def keys(self, change: Change) -> Iterable[Key]:
        meta = change.obj["metadata"]
        if change.kind is POD:
            self._count(change)
            key = meta["namespace"], meta["name"]
            if change.type != "DELETED" and _wants_node(change.obj):
                if change.old is None or not _wants_node(change.old):
                    self._pending[key] = None
                    if heeds_others(change.obj):
                        self._heedful[key] = None
                    yield key
                return
            self._pending.pop(key, None)
            self._heedful.pop(key, None)
            if not (change.type == "DELETED" or _ended(change.obj)):
                if _joins(change):
                    yield from self._heedful
                return
        elif change.kind not in (NODE, PVC, PV, STORAGE_CLASS) or not _counts(change):
            return
        elif change.kind is PV:
            self._volumes.note(change)
        if self._pending and not self._woken:
            self._woken = True
            self.add_later(ALL, 0.05)

    def _count(self, change: Change) -> None:
        """Update the total requests of bound pods."""
        pod, uid, name = change.obj, change.obj["metadata"]["uid"], change.obj["spec"].get("nodeName", "")
        holds = bool(name) and change.type != "DELETED" and not _ended(pod)
        if not holds and uid not in self._held:
            return
        state = self._state_of(self._held.get(uid) or name)
        if holds:
            if uid not in self._held:
                state.used.update(requests(pod["spec"]))
            self._held[uid], state.pods[uid] = name, pod
            if terms(pod, "podAntiAffinity", REQUIRED):
                state.repelling[uid] = pod
        else:
            state.used.subtract(requests(state.pods.pop(uid)["spec"]))
            state.repelling.pop(uid, None)
            del self._held[uid]

    def _state_of(self, name: str) -> NodeState:
        if name not in self._states:
            self._states[name] = NodeState({"metadata": {"name": name}})
        return self._states[name]

    def _nodes(self) -> list[NodeState]:
        """Return the present nodes."""
        states = []
        for node in self.api.store.all(NODE):
            state = self._state_of(node["metadata"]["name"])
            state.node = node
            states.append(state)
        return states

    async def reconcile(self, key: Key) -> float | None:
        if key == ALL:
            self._woken = False
            for waiting in sorted(self._pending, key=self._urgency):
                self.add(waiting)
            return None
        pod = self.api.store.get(POD, *key)
        if pod is None or not _wants_node(pod):
            return None
        self._schedule(pod)
        return None

    def _urgency(self, key: Key) -> int:
        pod = self.api.store.get(POD, *key)
        return -pod["spec"].get("priority", 0) if pod else 0

    def _schedule(self, pod: Obj) -> None:
        states = self._nodes()
        if blocked := self._volumes.blocked(pod):
            self._refuse(pod, f"0/{len(states)} nodes are available: {blocked}. not found")
            return
        if not states:
            self._refuse(pod, "no nodes available to schedule pods")
            return

        def wishes(among: list[NodeState]) -> Wishes:
            return Wishes(pod, among, lambda state: self._kept_off(pod, state), self._labels_of)

        asked = wishes(states)
        fitting: list[NodeState] = []
        refused: dict[str, Rejection] = {}
        for state in states[self._first :] + states[: self._first]:
            if rejection := asked.rejection(state):
                refused[state.name] = rejection
                continue
            fitting.append(state)
            if len(fitting) == compared(len(states)):
                break
        self._first = (self._first + len(fitting) + len(refused)) % len(states)
        if fitting:
            self._place(pod, hami.best(pod, fitting) if hami.owns(pod) else asked.best(fitting))
            return
        preemption = Preemption(pod, states, refused, wishes)
        self._refuse(pod, explain(refused.values(), preemption.told))
        for victim in preemption.victims:
            self._preempt(pod, victim, preemption.node)

    def _labels_of(self, namespace: str) -> dict[str, str]:
        found = self.api.store.get(NAMESPACE, "", namespace)
        return (found["metadata"].get("labels") or {}) if found else {}

    def _kept_off(self, pod: Obj, state: NodeState) -> Rejection | None:
        """Return the refusal by a volume, or by the cards of the node's GPUs."""
        return self._unreachable(pod, state) or (hami.rejection(pod, state) if hami.owns(pod) else None)

    def _unreachable(self, pod: Obj, state: NodeState) -> Rejection | None:
        """Return the refusal by a volume of the pod."""
        if why := self._volumes.unreachable(pod, state.node):
            return Rejection((why,))
        for name, claim in self._volumes.claims(pod):
            if claim and claim["spec"].get("accessModes") == ["ReadWriteOncePod"] and self._in_use(pod, name):
                return Rejection((ONE_POD,), resolvable=True)
        return None

    def _in_use(self, pod: Obj, claim: str) -> bool:
        namespace = pod["metadata"]["namespace"]
        others = (o for o in self.api.store.each(POD, namespace) if o["metadata"]["uid"] in self._held)
        return any(claim in claims_of(other) for other in others)

    def _place(self, pod: Obj, state: NodeState) -> None:
        """Bind the pod; if claims still wait for a node, have their volumes bound on this one first."""
        if not self._volumes.bind(pod, state.node):
            return  # the binding of the claims enqueues the pod again
        meta, name = pod["metadata"], state.name
        if hami.owns(pod):
            self._annotate(pod, hami.allocation(pod, state))
        bound = self.api.bind(pod, name)
        message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {name}"
        self._events(pod).scheduling(POD, bound, "Normal", "Scheduled", message, "Binding")

    def _annotate(self, pod: Obj, given: dict[str, str]) -> None:
        def annotate(obj: Obj) -> Obj:
            obj["metadata"].setdefault("annotations", {}).update(given)
            return obj

        meta = pod["metadata"]
        self.api.update(POD, meta["namespace"], meta["name"], annotate, Writer(hami.NAME))

    def _events(self, pod: Obj) -> Recorder:
        return self._recorders[hami.NAME if hami.owns(pod) else DEFAULT]

    def _refuse(self, pod: Obj, why: str) -> None:
        """Write the same words to the condition and the event; do not repeat them."""
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
        self._events(pod).scheduling(POD, told or pod, "Warning", "FailedScheduling", why, "Scheduling")

    def _preempt(self, pod: Obj, victim: Obj, node: str) -> None:
        """Delete a victim; its end enqueues the pod that needs the room."""
        if "deletionTimestamp" in victim["metadata"]:
            return
        why = "default-scheduler: preempting to accommodate a higher priority pod"
        self.api.set_status(POD, victim, disrupted(victim, "PreemptionByScheduler", why), "kube-scheduler")
        message = f"Preempted by pod {pod['metadata']['uid']} on node {node}"
        self._events(pod).scheduling(POD, victim, "Normal", "Preempted", message, "Preempting")
        self.api.try_delete(POD, victim)


def compared(nodes: int) -> int:
    """Return how many of `nodes` fitting nodes are compared: in a big cluster a part is enough."""
    return nodes if nodes < 100 else max(100, nodes * max(50 - nodes // 125, 5) // 100)


def _wants_node(pod: Obj) -> bool:
    return (
        not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
        and pod["spec"].get("schedulerName") in SCHEDULERS
        and not pod["spec"].get("schedulingGates")
        and not _ended(pod)
    )


def _joins(change: Change) -> bool:
    """Return True if a pod is newly on a node, or if its labels changed."""
    old, new = change.old, change.obj
    if not new["spec"].get("nodeName"):
        return False
    placed = old is not None and bool(old["spec"].get("nodeName"))
    return not placed or (old or {})["metadata"].get("labels") != new["metadata"].get("labels")


def _counts(change: Change) -> bool:
    """Return False for a heartbeat of a node, which changes nothing for the scheduler."""
    if change.kind is not NODE or change.type != "MODIFIED" or change.old is None:
        return True
    old, new = (
        (
            obj["spec"],
            *(obj["metadata"].get(of) for of in ("labels", "annotations")),
            obj["status"].get("allocatable"),
        )
        for obj in (change.old, change.obj)
    )
    return old != new


def _ended(pod: Obj) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
