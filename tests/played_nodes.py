"""Nodes without a kubelet on a real Kubernetes API: they announce and report what devcluster's nodes would.

With them a bare control plane can serve GPUs that are shared in any way. Addresses of Services and volumes stay the
cluster's job.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from devcluster.nodes import read
from devcluster.testing.kube import Kube, Obj

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LOOK_SECONDS = 0.3
BEAT_SECONDS = 10.0
HERE = ("Initialized", "PodScheduled")
WELL = ("Ready", "ContainersReady", *HERE)


class PlayedNodes:
    def __init__(self, kubeconfig: Path, folder: Path, nodes: str) -> None:
        file = folder / "nodes.yaml"
        file.write_text(nodes)
        self._kube = Kube(kubeconfig)
        self._bodies = {body["metadata"]["name"]: body for body in read(file).nodes}
        self._over = threading.Event()
        self._playing = threading.Thread(target=self._play)

    def join(self) -> None:
        for name, body in self._bodies.items():
            self._kube.create("/api/v1/nodes", body)
            capacity = body["status"]["capacity"]
            status = {"capacity": capacity, "allocatable": capacity, "conditions": [condition("Ready", True)]}
            self._say(f"/api/v1/nodes/{name}/status", {"status": status})
            holds = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": _now(".%fZ")}
            self._kube.create(LEASES, {"metadata": {"name": name}, "spec": holds})
        for name in self._bodies:
            self._kube.until(f"/api/v1/nodes/{name}", is_open)
        self._playing.start()

    def leave(self) -> None:
        self._over.set()
        self._playing.join()
        for name in self._bodies:
            self._kube.call("DELETE", f"/api/v1/nodes/{name}")
            self._kube.call("DELETE", f"{LEASES}/{name}")

    def _play(self) -> None:
        beaten = 0.0
        while not self._over.wait(LOOK_SECONDS):
            if time.monotonic() - beaten > BEAT_SECONDS:
                beaten = time.monotonic()
                for name in self._bodies:
                    self._say(f"{LEASES}/{name}", {"spec": {"renewTime": _now(".%fZ")}})
            for pod in self._kube.get("/api/v1/pods")["items"]:
                if pod["spec"].get("nodeName") in self._bodies:
                    self._keep(pod)

    def _keep(self, pod: Obj) -> None:
        """Take a pod's next step, as its kubelet would."""
        metadata, phase = pod["metadata"], pod["status"]["phase"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" not in metadata:
            if phase == "Pending":
                self._say(f"{path}/status", {"status": runs(pod)})
        elif phase in ("Pending", "Running"):
            self._say(f"{path}/status", {"status": ended(pod)})
        elif metadata["deletionGracePeriodSeconds"]:
            self._kube.call("DELETE", path, gracePeriodSeconds="0")

    def _say(self, path: str, body: Obj) -> None:
        """Send a merge patch and ignore the answer: a pod may be gone by now."""
        self._kube.call("PATCH", path, body, "merge")


def announced(kubeconfig: Path, folder: Path, nodes: str) -> Iterator[PlayedNodes]:
    played = PlayedNodes(kubeconfig, folder, nodes)
    played.join()
    yield played
    played.leave()


def is_open(node: Obj) -> bool:
    return all(taint["key"] != "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints", []))


def runs(pod: Obj) -> Obj:
    return {
        "phase": "Running",
        "startTime": _now(),
        "hostIP": "127.0.0.1",
        "podIP": "127.0.0.1",
        "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [condition(kind, True) for kind in WELL],
        "containerStatuses": [
            container_status(one, {"running": {"startedAt": _now()}}) for one in pod["spec"]["containers"]
        ],
    }


def ended(pod: Obj) -> Obj:
    state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": _now(), "finishedAt": _now()}}
    return {
        "phase": "Succeeded",
        "conditions": [condition(kind, kind in HERE) for kind in WELL],
        "containerStatuses": [container_status(one, state) for one in pod["spec"]["containers"]],
    }


def container_status(container: Obj, state: Obj) -> Obj:
    told = {"name": container["name"], "image": container["image"], "imageID": "played", "restartCount": 0}
    return told | {"ready": "running" in state, "started": "running" in state, "state": state}


def condition(kind: str, holds: bool) -> Obj:
    at = _now()
    told = {"type": kind, "status": str(holds), "reason": "Played", "message": ""}
    return told | {"lastTransitionTime": at} | ({"lastHeartbeatTime": at} if kind == "Ready" else {})


def _now(end: str = "Z") -> str:
    return datetime.now(UTC).strftime(f"%Y-%m-%dT%H:%M:%S{end}")
