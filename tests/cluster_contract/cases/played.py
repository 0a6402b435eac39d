"""Pods that no node takes: the case simulates their kubelet, so that they start and end on demand in any cluster."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from devcluster.testing.kube import Kube, Obj

GATE = [{"name": "example.org/no-node"}]


def template(image: str, app: str = "", **spec: Any) -> Obj:
    """Return a template for pods that get no node unless `nodeName` is given."""
    container = {"name": "main", "image": image}
    labels = {"labels": {"app": app}} if app else {}
    place = {} if "nodeName" in spec else {"schedulingGates": GATE}
    return {"metadata": labels, "spec": {**place, "containers": [container], **spec}}


@contextmanager
def own_node(kube: Kube) -> Iterator[str]:
    """Create a node without a kubelet: a pod deleted there stays until the case removes it."""
    name = f"played-{uuid.uuid4().hex[:8]}"
    kube.create("/api/v1/nodes", {"metadata": {"name": name}})
    try:
        yield name
    finally:
        kube.call("DELETE", f"/api/v1/nodes/{name}")


def remove(kube: Kube, space: str, name: str) -> None:
    """Delete the pod for good, as a kubelet does once no container of it is left."""
    kube.call("DELETE", f"{space}/pods/{name}", {"gracePeriodSeconds": 0})


def pods(kube: Kube, space: str, **labels: str) -> list[Obj]:
    """Return the pods with these labels, by name."""
    items: list[Obj] = kube.get(f"{space}/pods", labelSelector=_selector(labels))["items"]
    return items


def until_pods(kube: Kube, space: str, count: int, **labels: str) -> list[Obj]:
    """Wait until that many pods have these labels, and return them."""
    path = f"{space}/pods?labelSelector={_selector(labels)}"
    items: list[Obj] = kube.until(path, lambda o: len(o["items"]) == count)["items"]
    return items


def _selector(labels: dict[str, str]) -> str:
    return ",".join(f"{k}={v}" for k, v in labels.items())


def start(kube: Kube, space: str, pod: Obj, ready: bool = True, ago_seconds: int = 0) -> None:
    conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": _at(ago_seconds)}]
    _tell(kube, space, pod, {"phase": "Running", "conditions": conditions})


def end(kube: Kube, space: str, pod: Obj, code: int = 0, ago_seconds: int = 0, **status: Any) -> None:
    """Report that the pod's container exited `ago_seconds` ago."""
    terminated = {"exitCode": code, "startedAt": _at(ago_seconds + 1), "finishedAt": _at(ago_seconds)}
    container = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    container["state"] = {"terminated": terminated}
    phase = "Failed" if code else "Succeeded"
    _tell(kube, space, pod, {"phase": phase, "containerStatuses": [container], **status})


def _tell(kube: Kube, space: str, pod: Obj, status: Obj) -> None:
    path = f"{space}/pods/{pod['metadata']['name']}/status"
    code, answer = kube.call("PATCH", path, {"status": status}, "merge")
    assert code == 200, answer


def _at(ago_seconds: int) -> str:
    return (datetime.now(UTC) - timedelta(seconds=ago_seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def events(kube: Kube, space: str, name: str, reason: str) -> list[str]:
    """Wait for events about the object with this reason, and return their messages."""
    fields = f"involvedObject.name={name},reason={reason}"
    found = kube.until(f"{space}/events?fieldSelector={fields}", lambda o: bool(o["items"]))
    return [e["message"] for e in found["items"]]


def conditions(obj: Obj) -> dict[str, Obj]:
    return {c["type"]: c for c in obj.get("status", {}).get("conditions", [])}
