"""HTTP calls of tests to the Kubernetes API that a kubeconfig names, without a client library."""

import base64
import itertools
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable
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


class Kube:
    """Client of a kubeconfig's cluster, with a token or a client certificate."""

    agent = "tests/1"

    def __init__(self, kubeconfig: Path):
        self.kubeconfig = kubeconfig
        self.connect()

    def connect(self) -> None:
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url, self.token = cluster["server"], user.get("token", "")
        self._nobody, self._tls = _trusting(cluster), _trusting(cluster)
        if "client-certificate" in user:
            self._tls.load_cert_chain(user["client-certificate"], user["client-key"])

    def open(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, **query: Any
    ) -> Any:
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", "User-Agent": self.agent}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(url, data, sent | (headers or {}), method=method)
        # A caller with its own Authorization must not be identified by the kubeconfig's certificate.
        context = self._nobody if headers and "Authorization" in headers else self._tls
        return urllib.request.urlopen(request, context=context, timeout=60)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        patch: str = "",
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> tuple[int, Any]:
        """Return the status and the answer as JSON, or as text if it is not JSON."""
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
        """Create a namespace, wait for the service account that pods need, and return its path."""
        path = f"/api/v1/namespaces/{name}"
        self.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        self.until(f"{path}/serviceaccounts/default", lambda found: found.get("kind") == "ServiceAccount")
        return path

    def fresh(self, **labels: str) -> str:
        """Create a namespace with a unique name; return its path."""
        return self.namespace(f"test-{uuid.uuid4().hex[:6]}-{next(_NUMBERS)}", **labels)

    def until(self, path: str, holds: Callable[[Any], bool], seconds: float = 60) -> Any:
        end = time.monotonic() + seconds
        while True:
            _, found = self.call("GET", path)
            if holds(found):
                return found
            assert time.monotonic() < end, json.dumps(found)[:3000]
            time.sleep(0.05)

    def watch(
        self,
        path: str,
        act: Callable[[], object] | None = None,
        seconds: int = 1,
        count: int = 0,
        **query: Any,
    ) -> list[Obj]:
        """Return the events of a watch of `seconds`, or its first `count` events; call `act` meanwhile."""
        if act:
            threading.Timer(0.2, act).start()
        with self.open(
            "GET", path, watch="1", timeoutSeconds=str(30 if count else seconds), **query
        ) as answer:
            return [json.loads(line) for line in itertools.islice(answer, count or None)]


def _trusting(cluster: Obj) -> ssl.SSLContext:
    if given := cluster.get("certificate-authority-data"):
        return ssl.create_default_context(cadata=base64.b64decode(given).decode())
    return ssl.create_default_context(cafile=cluster["certificate-authority"])
