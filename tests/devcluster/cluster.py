"""A devcluster as a process of its own, and the few HTTP calls that the tests make of it."""

import base64
import itertools
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

Obj = dict[str, Any]
_NUMBERS = itertools.count(1)
PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class DevCluster:
    agent = "tests/1"

    def __init__(self, folder: Path, *arguments: str, nodes: str | None = None):
        self.state, self.kubeconfig = folder / "state", folder / "kubeconfig"
        self._arguments = [*arguments]
        if nodes is not None:
            (folder / "nodes.yaml").write_text(nodes)
            self._arguments += ["--nodes", str(folder / "nodes.yaml")]
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "devcluster", "--state-dir", str(self.state)]
        command += ["--kubeconfig", str(self.kubeconfig), *self._arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "is ready" in line, line
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self.url = cluster["server"]
        self.token = config["users"][0]["user"]["token"]
        trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=trusted)

    def end(self, number: int = signal.SIGTERM) -> float:
        """Signal it and wait; how many seconds it took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(10)
        return time.monotonic() - began

    def open(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, **query: Any
    ) -> Any:
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", "User-Agent": self.agent}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(url, data, sent | (headers or {}), method=method)
        return urllib.request.urlopen(request, context=self._tls, timeout=20)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        patch: str = "",
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> tuple[int, Any]:
        content_type = {"Content-Type": PATCHES[patch]} if patch else {}
        try:
            with self.open(method, path, body, content_type | (headers or {}), **query) as answer:
                code, raw = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            code, raw = error.code, error.read()
        try:
            return code, json.loads(raw)
        except ValueError:
            return code, raw.decode()

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, **query)[1]

    def create(self, path: str, body: Obj, **query: Any) -> Obj:
        code, made = self.call("POST", path, body, **query)
        assert code == 201, made
        return dict(made)

    def apply(self, path: str, body: Obj, manager: str = "berth", force: bool = True) -> tuple[int, Any]:
        return self.call("PATCH", path, body, "apply", fieldManager=manager, force=str(force).lower())

    def namespace(self, name: str, **labels: str) -> str:
        self.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        return f"/api/v1/namespaces/{name}"

    def fresh(self) -> str:
        """A namespace of its own for a test."""
        return self.namespace(f"test-{next(_NUMBERS)}")

    def until(self, path: str, holds: Callable[[Any], bool], seconds: float = 15) -> Any:
        end = time.monotonic() + seconds
        while True:
            _, found = self.call("GET", path)
            if holds(found):
                return found
            assert time.monotonic() < end, json.dumps(found)[:3000]
            time.sleep(0.05)

    def watch(
        self, path: str, act: Callable[[], object] | None = None, seconds: int = 1, **query: Any
    ) -> list[Obj]:
        """The events of a watch of so many seconds, during which `act` happens."""
        if act:
            threading.Timer(0.2, act).start()
        with self.open("GET", path, watch="1", timeoutSeconds=str(seconds), **query) as answer:
            return [json.loads(line) for line in answer]


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


def is_ready(found: Obj) -> bool:
    conditions = (
        found.get("status", {}).get("conditions", []) if isinstance(found.get("status"), dict) else []
    )
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def is_gone(found: Obj) -> bool:
    return found.get("code") == 404


ROOT = os.geteuid() == 0
