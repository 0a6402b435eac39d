"""Pods whose containers run scripts, for cases that need a kubelet that really runs them."""

from dataclasses import dataclass
from typing import Any

from devcluster.testing.kube import Kube, Obj


@dataclass
class Ground:
    """Namespace of a cluster that really runs containers, with a node and an image that has sh and python."""

    kube: Kube
    space: str
    node: str
    image: str

    def container(self, script: str, name: str = "main", **fields: Any) -> Obj:
        address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        return {
            "name": name,
            "image": self.image,
            "command": ["sh", "-c", script],
            "env": [address],
            **fields,
        }

    def pod(
        self, script: str, *, name: str = "p", main: Obj | None = None, finalizers: Any = None, **spec: Any
    ) -> str:
        """Create a pod and return its path; `main`: further fields of its container."""
        usual: Obj = {
            "nodeName": self.node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsUser": 1000, "runAsGroup": 1000},
            "containers": [self.container(script, **(main or {}))],
        }
        metadata = {"name": name, "finalizers": finalizers or []}
        self.kube.create(f"{self.space}/pods", {"metadata": metadata, "spec": usual | spec})
        return f"{self.space}/pods/{name}"

    def ended(self, path: str, phase: str = "Succeeded") -> Obj:
        found = self.kube.until(path, lambda o: o["status"].get("phase") in ("Succeeded", "Failed"), 60)
        assert found["status"]["phase"] == phase, found["status"]
        return dict(found)

    def until(self, path: str, word: str) -> Obj:
        """Wait until the object's status contains the word, and return the object."""
        return dict(self.kube.until(path, lambda o: f"'{word}'" in str(o["status"]), 60))

    def log(self, path: str, **query: Any) -> str:
        code, text = self.kube.call("GET", f"{path}/log", **query)
        assert code == 200, text
        return str(text)

    def events(self, reason: str, name: str = "p") -> list[str]:
        """Wait for events about the pod with this reason, and return their messages."""
        fields = f"involvedObject.name={name},reason={reason}"
        found = self.kube.until(f"{self.space}/events?fieldSelector={fields}", lambda o: bool(o["items"]), 60)
        return [e["message"] for e in found["items"]]


def container(pod: Obj, name: str = "main") -> Obj:
    """Return the status of a container."""
    status = pod["status"]
    every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    return dict(next(c for c in every if c["name"] == name))


def conditions(pod: Obj) -> dict[str, Obj]:
    return {c["type"]: c for c in pod["status"].get("conditions", [])}
