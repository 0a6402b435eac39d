"""What the watches of one cluster heard last, kept in memory, and writes to that cluster.

A reconcile takes objects from here instead of reading them: no request, and as fresh as the last event. It is a cache
of one process, filled anew by every list; rows stay the truth. The answer of a write replaces the object at once, so
that a reconcile sees its own writes before the watch reports them.

What is old here does no harm, because writes carry what they depend on: a name that can be taken once, or a uid.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from clusters.api import Api
from clusters.labels import JOB, WORKSPACE
from clusters.transport import Json, Objects

Name = tuple[str, str]  # namespace, or "", and name

# Parts that Berth does not read, and that make up most of an object.
UNREAD_METADATA = ("managedFields", "selfLink", "generateName")
# Times in a condition: they change while nothing else does.
CLOCKS = ("lastProbeTime", "lastTransitionTime", "lastHeartbeatTime", "observedGeneration")
# Events about troubles that are kept of one object, the newest, and objects with such events.
MOST_EVENTS = 20
MOST_TROUBLED = 20_000


class Mirror:
    """Objects of one cluster by kind. Thread-safe; nobody may change a body that was read from it."""

    def __init__(self, reach: Callable[[], Api]) -> None:
        """Take what returns the cluster's API: a kubeconfig that was rewritten is read anew."""
        self._reach = reach
        self._lock = threading.Lock()
        self._objects: dict[str, dict[Name, Json]] = defaultdict(dict)
        self._names: dict[str, dict[str, set[Name]]] = defaultdict(lambda: defaultdict(set))
        self._versions: dict[str, int] = {}
        self._events: OrderedDict[str, dict[str, Json]] = OrderedDict()

    @property
    def api(self) -> Api:
        """The cluster itself, for what must not be old."""
        return self._reach()

    # --- reading

    def get(self, kind: str, namespace: str | None, name: str) -> Json | None:
        with self._lock:
            return self._objects[kind].get((namespace or "", name))

    def of(self, kind: str, workload: str, *, also: Iterable[str] = (), namespace: str = "") -> Objects:
        """Objects with the workspace's or job's label, and those called `also`: somebody may have removed it there."""
        with self._lock:
            names = {*self._names[kind].get(workload, ()), *((namespace, name) for name in also)}
            found = [self._objects[kind].get(name) for name in sorted(names)]
        return [body for body in found if body is not None]

    def all(self, kind: str) -> Objects:
        with self._lock:
            return list(self._objects[kind].values())

    def count(self) -> int:
        with self._lock:
            return sum(map(len, self._objects.values()))

    # --- what the watch heard

    def replace(self, kind: str, bodies: Iterable[Json], version: str) -> Objects:
        """Take a list of all objects of a kind. Return those that were known and are gone."""
        with self._lock:
            before = self._objects[kind]
            self._objects[kind], self._names[kind] = {}, defaultdict(set)
            self._versions[kind] = number(version)
            for body in bodies:
                self._put(kind, body)
            return [body for name, body in before.items() if name not in self._objects[kind]]

    def heard(self, kind: str, change: str, body: Json) -> Json | None:
        """Take one event of the watch. Return the object as it was known before."""
        with self._lock:
            self._versions[kind] = max(self._versions.get(kind, 0), number(version_of(body)))
            before = self._objects[kind].get(name_of(body))
            if before is not None and number(version_of(before)) > number(version_of(body)):
                return before  # the answer of a later write was quicker
            self._drop(kind, name_of(body)) if change == "DELETED" else self._put(kind, body)
            return before

    def read_anew(self, kind: str, namespace: str, name: str) -> None:
        """Ask the cluster for an object about which nothing was heard for long: a watch may be silent."""
        body = self.api.get(kind, namespace, name)
        if body is not None:
            self._answered(body)
            return
        with self._lock:
            self._drop(kind, (namespace, name))

    def _put(self, kind: str, body: Json) -> None:
        name = name_of(body)
        self._drop(kind, name)
        self._objects[kind][name] = body
        if workload := workload_of(body):
            self._names[kind][workload].add(name)

    def _drop(self, kind: str, name: Name) -> None:
        before = self._objects[kind].pop(name, None)
        if before is not None and (workload := workload_of(before)):
            names = self._names[kind][workload]
            names.discard(name)
            if not names:
                del self._names[kind][workload]

    # --- events about troubles, by the uid of the object that they are about

    def events_about(self, uid: str) -> Objects:
        with self._lock:
            return list(self._events.get(uid, {}).values())

    def heard_event(self, event: Json) -> bool:
        """Keep an event. Return True if it says something new: another text, not the same once more."""
        uid, name = event["involvedObject"].get("uid", ""), event["metadata"]["name"]
        said = event.get("reason"), event.get("message")
        with self._lock:
            known = self._events.setdefault(uid, {})
            is_new = all((one.get("reason"), one.get("message")) != said for one in known.values())
            known.pop(name, None)
            known[name] = event
            if len(known) > MOST_EVENTS:
                del known[next(iter(known))]
            self._events.move_to_end(uid)
            if len(self._events) > MOST_TROUBLED:
                self._events.popitem(last=False)
        return is_new

    # --- writing

    def apply(self, body: Json) -> Json:
        return self._answered(self.api.apply(body))

    def create(self, body: Json) -> Json:
        """Create the object; raises ClusterRefused (409) if the name is taken."""
        return self._answered(self.api.create(body))

    def json_patch(self, kind: str, namespace: str | None, name: str, operations: Objects) -> Json | None:
        answer = self.api.json_patch(kind, namespace, name, operations)
        return answer and self._answered(answer)

    def merge_patch(
        self, kind: str, namespace: str | None, name: str, body: Mapping[str, Any]
    ) -> Json | None:
        answer = self.api.merge_patch(kind, namespace, name, dict(body))
        return answer and self._answered(answer)

    def delete(self, kind: str, namespace: str | None, name: str, **options: Any) -> bool:
        """Delete; return False if nothing was there. The watch reports the end."""
        if kind == "Secret" and self.get("Namespace", None, namespace or "") is None:
            return False  # in a namespace that is not there, Berth has no right to Secrets
        return self.api.delete(kind, namespace, name, **options)

    def _answered(self, body: Json) -> Json:
        """Keep the answer of a write, unless the watch already knows what came after it."""
        kind, body = body["kind"], trimmed(body)
        with self._lock:
            if kind in self._versions and number(version_of(body)) > self._versions[kind]:
                if ends_with_this(body):
                    self._drop(kind, name_of(body))
                else:
                    self._put(kind, body)
        return body


def ends_with_this(body: Json) -> bool:
    """Return True if nothing keeps a deleted object any longer: this write was its last."""
    metadata = body["metadata"]
    is_due = metadata.get("deletionGracePeriodSeconds", 0) == 0
    return bool(metadata.get("deletionTimestamp") and not metadata.get("finalizers") and is_due)


def workload_of(body: Json) -> str:
    """Return the id of the workspace or job that an object is labelled with; empty: of none."""
    labels = body["metadata"].get("labels") or {}
    return str(labels.get(WORKSPACE) or labels.get(JOB) or "")


def name_of(body: Json) -> Name:
    return body["metadata"].get("namespace") or "", body["metadata"]["name"]


def version_of(body: Json) -> str:
    return str(body["metadata"].get("resourceVersion") or "")


def number(version: str) -> int:
    """Return a resource version as a number; since Kubernetes 1.35 they are promised to be ordered so."""
    return int(version) if version.isdecimal() else 0


def trimmed(body: Json) -> Json:
    """Return the object without what Berth never reads of it, which is most of a pod.

    Raises TypeError or a LookupError for an object that nothing could find again.
    """
    if not all(isinstance(part, str) for part in (*name_of(body), version_of(body))):
        raise TypeError("a name that is no text")
    if not isinstance(body["metadata"].get("labels") or {}, dict):
        raise TypeError("labels that are no object")
    metadata = {key: value for key, value in body["metadata"].items() if key not in UNREAD_METADATA}
    if body["kind"] != "Pod":
        return {**body, "metadata": metadata}
    spec = {key: body["spec"][key] for key in ("nodeName", "volumes") if key in body["spec"]}
    spec["containers"] = [
        {key: container[key] for key in ("name", "ports") if key in container}
        for container in body["spec"]["containers"]
    ]
    return {**body, "metadata": metadata, "spec": spec}


def says_the_same(before: Json | None, after: Json) -> bool:
    """Return True if a change changed nothing that anybody reads: versions and clocks only."""
    return before is not None and _said(before) == _said(after)


def _said(body: Json) -> Json:
    metadata = {k: v for k, v in body["metadata"].items() if k not in ("resourceVersion", "generation")}
    status = body.get("status") or {}
    conditions = [
        {key: value for key, value in condition.items() if key not in CLOCKS}
        for condition in status.get("conditions") or ()
    ]
    return {**body, "metadata": metadata, "status": {**status, "conditions": conditions}}
