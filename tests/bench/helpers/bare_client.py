"""Client to measure Berth against: it applies a workspace's objects from manifests and waits by watch.

It does what a careful script would: server-side apply over open connections, one watch for all pods and one for all
Services, no read before a write, no dry run, no stored state.
"""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from clusters.api import Api
from clusters.connections import connect
from clusters.errors import ClusterError
from clusters.models import Cluster
from clusters.watch.watching import event_of
from tests.e2e.stack import until
from tests.workspaces import builders
from workspaces.cluster import manifests, tenancy
from workspaces.cluster.observe import address, condition

THREADS = 4  # more make no difference: the server works on one request at a time
LABELS = {"berth.dev/instance": str(builders.INSTANCE)}
KINDS = ("StatefulSet", "Service", "Secret", "ConfigMap", "PersistentVolumeClaim")


class BareClient:
    def __init__(self, kubeconfig: Path) -> None:
        self.cluster = Cluster(slug="bare", connection="kubeconfig", kubeconfig_path=str(kubeconfig))
        self.api: Api = connect(self.cluster)
        self.numbers = count()
        tenant = builders.workspace().tenant
        for body in tenancy.objects(tenant, self.cluster, builders.INSTANCE, {"nvidia.com/gpu": 104}):
            self.api.apply(body)

    def start(self, count: int) -> float:
        """Return the seconds until all pods are ready and all Services have their address."""
        launches = [bodies(next(self.numbers)) for _ in range(count)]
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(lambda _: self.api.list("Namespace"), range(4 * THREADS)))  # connected
            heard: queue.Queue[tuple[str, str]] = queue.Queue()
            watches = [self.watch(kind, heard) for kind in ("Pod", "Service")]
            began = time.monotonic()
            applied = [threads.submit(self.apply, launch) for launch in launches]
            ready: set[tuple[str, str]] = set()
            while len(ready) < 2 * count:
                ready.add(heard.get(timeout=240))
            took = time.monotonic() - began
            for done in applied:
                done.result()
        for lines in watches:
            lines.close()
        return took

    def apply(self, launch: list[dict[str, Any]]) -> None:
        for body in launch:
            self.api.apply(body)

    def watch(self, kind: str, heard: queue.Queue[tuple[str, str]]) -> Any:
        version = self.api.list_with_version(kind, labels=LABELS, keep=str)[1]
        lines = self.api.watch(
            kind, version=version, labels=LABELS, server_timeout_seconds=300, read_timeout_seconds=300
        )

        def listen() -> None:
            with suppress(ClusterError):
                for line in lines:
                    body = event_of(line)["object"]
                    if condition(body, "Ready") == "True" if kind == "Pod" else address(body, None)[0]:
                        heard.put((kind, body["metadata"]["name"]))

        threading.Thread(target=listen, daemon=True).start()
        return lines

    def clear(self) -> None:
        for kind in KINDS:
            for body in self.api.list(kind, labels=LABELS):
                self.api.delete(kind, body["metadata"]["namespace"], body["metadata"]["name"])
        until("nothing is left", lambda: not self.api.list("Pod", labels=LABELS), 120)


def bodies(number: int) -> list[dict[str, Any]]:
    """Return a workspace's objects as Berth applies them, without owner references and the pod's finalizer."""
    row = builders.workspace(id=uuid4(), cpu_millicores=8000, memory_mib=65536, env={})
    wanted = builders.wanted(row, node=f"gpu-{1 + number % 104 // 8}")
    nobody = {"metadata": {"name": "", "uid": ""}}
    hanging = [make(wanted, nobody) for make in (manifests.service, manifests.secret, manifests.config_map)]
    for body in hanging:
        del body["metadata"]["ownerReferences"]
    controller = manifests.stateful_set(wanted, replicas=1)
    del controller["spec"]["template"]["metadata"]["finalizers"]
    return [*manifests.volume_claims(wanted), *hanging, controller]
