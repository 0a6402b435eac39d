"""Kubernetes events in the form of each component: a repeat raises a count instead of creating another event.

Losing an event is no error for its sender, as in real components: what cannot be written is dropped.
"""

import contextlib
import sqlite3
import time

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.errors import ApiError
from devcluster.resources import EVENT, Kind, Obj
from devcluster.values.clock import age_seconds, now, now_micro

LIFETIME_SECONDS = 3600
KNOWN = 4096
"""Events remembered for counting their repeats."""
_SCHEDULERS: Obj = {
    f"f:{name}": {}
    for name in (
        "action",
        "eventTime",
        "note",
        "reason",
        "regarding",
        "reportingController",
        "reportingInstance",
        "type",
    )
}
"""What a writer of events.k8s.io/v1 owns, by that group's names."""


def reference(kind: Kind, obj: Obj, field_path: str = "") -> Obj:
    meta = obj["metadata"]
    ref: Obj = {"kind": kind.kind, "name": meta["name"], "uid": meta["uid"], "apiVersion": kind.api_version}
    if "namespace" in meta:
        ref["namespace"] = meta["namespace"]
    if "resourceVersion" in meta:
        ref["resourceVersion"] = meta["resourceVersion"]
    return ref | ({"fieldPath": field_path} if field_path else {})


class Recorder:
    def __init__(self, api: Api, component: str, host: str = "", manager: str = CONTROLLER):
        self._api, self._component, self._host = api, component, host
        self._writer = Writer(manager)
        self._known: dict[tuple[str, str, str, str], str] = {}

    def event(
        self, kind: Kind, obj: Obj, level: str, reason: str, message: str, field_path: str = ""
    ) -> None:
        """Record an event, or count one more of the same."""
        self.about(reference(kind, obj, field_path), level, reason, message)

    def about(self, ref: Obj, level: str, reason: str, message: str) -> None:
        """Record an event of an object that is known only by a reference, or count one more of the same."""
        namespace = ref.get("namespace", "default")
        key = (ref.get("uid") or f"{namespace}/{ref['name']}", ref.get("fieldPath", ""), reason, message)
        if (name := self._known.get(key)) and (old := self._api.store.get(EVENT, namespace, name)):
            self._again(namespace, old)
            return
        body: Obj = {"metadata": {"name": f"{ref['name']}.{time.time_ns():x}"}, "involvedObject": ref}
        body |= {"reason": reason, "message": message[:1024], "type": level, "eventTime": None, "count": 1}
        body |= {"firstTimestamp": now(), "lastTimestamp": now()}
        body["source"] = {"component": self._component} | ({"host": self._host} if self._host else {})
        body |= {"reportingComponent": self._component, "reportingInstance": self._host}
        self._known[key] = body["metadata"]["name"]
        if len(self._known) > KNOWN:
            del self._known[next(iter(self._known))]
        self._create(namespace, body)

    def scheduling(self, kind: Kind, obj: Obj, level: str, reason: str, message: str, action: str) -> None:
        """Record an event in the scheduler's form: eventTime alone, no count."""
        ref = reference(kind, obj)
        entry: Obj = {
            "manager": self._writer.manager,
            "operation": "Update",
            "apiVersion": "events.k8s.io/v1",
        }
        entry |= {"time": now(), "fieldsType": "FieldsV1", "fieldsV1": _SCHEDULERS}
        meta = {"name": f"{ref['name']}.{time.time_ns():x}", "managedFields": [entry]}
        body: Obj = {"metadata": meta, "involvedObject": ref}
        body |= {"reason": reason, "message": message[:1024], "type": level, "source": {}}
        body |= {"firstTimestamp": None, "lastTimestamp": None, "eventTime": now_micro(), "action": action}
        body |= {"reportingComponent": self._component, "reportingInstance": self._host}
        self._create(ref.get("namespace", "default"), body)

    def _again(self, namespace: str, old: Obj) -> None:
        more = {"count": old["count"] + 1, "lastTimestamp": now()}
        with contextlib.suppress(sqlite3.OperationalError):  # the disk is full
            self._api.update(EVENT, namespace, old["metadata"]["name"], lambda o: o | more, self._writer)

    def _create(self, namespace: str, body: Obj) -> None:
        # Its namespace is gone and so are its readers, or the disk is full.
        with contextlib.suppress(ApiError, sqlite3.OperationalError):
            self._api.create(EVENT, namespace, body, self._writer)


def expire(api: Api) -> None:
    """Delete events after an hour, as the API server does."""
    for event in api.store.each(EVENT):
        if age_seconds(event["metadata"]["creationTimestamp"]) > LIFETIME_SECONDS:
            api.try_delete(EVENT, event)
