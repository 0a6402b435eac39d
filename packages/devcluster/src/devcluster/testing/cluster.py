"""Devcluster as a separate process, and the objects that the tests create in it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from devcluster.testing.kube import Kube, Obj

END_SECONDS = 25.0


class DevCluster(Kube):
    command: tuple[str, ...] = (sys.executable,)
    program: tuple[str, ...] = ("-m", "devcluster")

    def __init__(self, folder: Path, *arguments: str, nodes: str | None = None):
        self.state, self.kubeconfig = folder / "state", folder / "kubeconfig"
        self._arguments = [*arguments]
        if nodes is not None:
            (folder / "nodes.yaml").write_text(nodes)
            self._arguments += ["--nodes", str(folder / "nodes.yaml")]
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [*self.command, *self.program, "--state-dir", str(self.state)]
        command += ["--kubeconfig", str(self.kubeconfig), *self._arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "is ready" in line, line
        self.connect()

    def watch_until(
        self, path: str, since: str, holds: Callable[[Obj], bool], act: Callable[[], object] | None = None
    ) -> list[Obj]:
        """Watch from a version and return the events up to the first that `holds`; call `act` during the watch."""
        seen: list[Obj] = []
        with self.open("GET", path, watch="1", timeoutSeconds="60", resourceVersion=since) as answer:
            if act:
                act()
            for line in answer:
                seen.append(json.loads(line))
                if holds(seen[-1]):
                    return seen
        raise AssertionError(seen)

    def switch(self, **fault: Any) -> int:
        """Switch a fault on. Return its id."""
        code, made = self.call("POST", "/_faults", fault)
        assert code == 201, made
        return int(made["id"])

    def end(self, number: int = signal.SIGTERM) -> None:
        """Signal the process and wait for its end, for less time than pods usually have to end."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(END_SECONDS)


def running(
    folder: Path, *arguments: str, nodes: str | None = None, kind: type[DevCluster] = DevCluster
) -> Iterator[DevCluster]:
    cluster = kind(folder, *arguments, nodes=nodes)
    cluster.start()
    yield cluster
    assert cluster.process is not None
    if cluster.process.poll() is None:
        cluster.end()


def pod(name: str, **spec: Any) -> Obj:
    container = {
        "name": "main",
        "image": "local/none:1",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container], **spec}}


def stateful_set(name: str, replicas: int = 1, **template_meta: Any) -> Obj:
    template = {"metadata": {"labels": {"app": name}, **template_meta}, "spec": pod(name)["spec"]}
    spec = {
        "replicas": replicas,
        "serviceName": name,
        "selector": {"matchLabels": {"app": name}},
        "template": template,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}


def volume_claim(name: str, size: str, **spec: Any) -> Obj:
    """Return a claim of the class whose volumes can be attached, copied and grown."""
    wanted: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": wanted | {"storageClassName": "net-shared", **spec}}


def is_ready(found: Obj) -> bool:
    conditions = (
        found.get("status", {}).get("conditions", []) if isinstance(found.get("status"), dict) else []
    )
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def is_gone(found: Obj) -> bool:
    return found.get("code") == 404


ROOT = os.geteuid() == 0
