"""Client to measure Berth against: it creates a workspace's objects from Berth's manifests and waits by watch.

It does what a careful script would: requests over open connections, one watch for each kind that it waits for, no read
before a write, no stored state. A pod is posted when its home is bound.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from accounts.models import Tenant, User
from clusters.api import Api
from clusters.connections import connect
from clusters.errors import ClusterError
from clusters.labels import INSTANCE
from clusters.models import Cluster
from clusters.pods.ends import condition
from clusters.watch.watching import event_of
from quotas.models import Flavor
from quotas.namespaces import manifests as tenancy
from storage.cluster.manifests import claim
from storage.models import HOME_PATH, Access, Kind, Mount, Volume
from tests.e2e.stack import until
from tests.workspaces import builders
from workloads.models import Image
from workspaces.cluster import manifests
from workspaces.cluster.observe import address
from workspaces.cluster.wanted import Wanted
from workspaces.models import Workspace

THREADS = 4
PATIENCE_SECONDS = 300
Json = dict[str, Any]
DONE: dict[str, Callable[[Json], bool]] = {
    "Pod": lambda body: condition(body, "Ready") == "True",
    "Service": lambda body: bool(address(body, None)[0]),
    "PersistentVolumeClaim": lambda body: body.get("status", {}).get("phase") == "Bound",
}


class BareClient:
    """Creates what Berth's rows (cluster, flavor, image) ask for, in a namespace and with an instance of its own."""

    def __init__(self, kubeconfig: Path, flavor: str) -> None:
        self.flavor = Flavor.objects.select_related("pool__cluster").get(slug=flavor)
        self.image = Image.objects.get(slug="jupyter")
        self.cluster = self.flavor.pool.cluster
        own = Cluster(slug="bare", connection="kubeconfig", kubeconfig_path=str(kubeconfig))
        self.api: Api = connect(own)
        self.tenant = Tenant(slug="bench-bare", name="Bench, bare")
        self.instance = uuid4()
        self.labels = {INSTANCE: str(self.instance)}
        self.wanted: list[Wanted] = []
        for body in tenancy.objects(self.tenant, self.cluster, self.instance, {}):
            self.api.apply(body)
        self.binds_first = self._binds_before_a_pod()

    def launch(self, count: int) -> float:
        """Return the seconds until all pods are ready and all Services have their address."""
        self.wanted = [self._workspace() for _ in range(count)]
        self.api.apply(manifests.start_files(self.wanted[0]))
        pods = {wanted.name for wanted in self.wanted}
        of_home = {wanted.mounts[0].volume.object_name: wanted for wanted in self.wanted}
        with ThreadPoolExecutor(THREADS) as threads, Watches(self.api, DONE, self.labels) as heard:
            self._connect(threads)
            began = time.monotonic()
            sent = [threads.submit(self._prepare, wanted) for wanted in self.wanted]
            left = {("Pod", name) for name in pods} | {("Service", name) for name in pods}
            while left:
                kind, name = _next(heard, sent)
                left.discard((kind, name))
                if kind == "PersistentVolumeClaim" and self.binds_first and name in of_home:
                    sent.append(threads.submit(self._post, of_home[name]))
            return time.monotonic() - began

    def stop(self) -> None:
        """Delete the pods alone: homes, Services and Secrets stay."""
        self._delete("Pod")

    def start(self) -> float:
        """Post the pods again. Return the seconds until all are ready."""
        with ThreadPoolExecutor(THREADS) as threads, Watches(self.api, ("Pod",), self.labels) as heard:
            self._connect(threads)
            began = time.monotonic()
            sent = [threads.submit(self._post, wanted) for wanted in self.wanted]
            ready = set[str]()
            while len(ready) < len(self.wanted):
                ready.add(_next(heard, sent)[1])
            return time.monotonic() - began

    def clear(self) -> float:
        """Return the seconds until nothing is left."""
        began = time.monotonic()
        for kind in ("Pod", "Service", "Secret", "PersistentVolumeClaim"):
            self._delete(kind)
        return time.monotonic() - began

    def remove(self, *namespaces: str) -> None:
        for name in (self.tenant.namespace, *namespaces):
            self.api.delete("Namespace", None, name)

    def _prepare(self, wanted: Wanted) -> None:
        home = claim(wanted.mounts[0].volume, None, self.instance)
        for body in (home, manifests.service(wanted), manifests.secret(wanted)):
            self.api.apply(body)
        if not self.binds_first:
            self._post(wanted)

    def _post(self, wanted: Wanted) -> None:
        body = manifests.pod(wanted)
        body["metadata"].pop("finalizers", None)
        self.api.create(body)

    def _delete(self, kind: str) -> None:
        def names() -> list[str]:
            return [body["metadata"]["name"] for body in self.api.list(kind, labels=self.labels)]

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(lambda name: self.api.delete(kind, self.tenant.namespace, name), names()))
        until(f"no {kind} is left", lambda: not names(), PATIENCE_SECONDS)

    def _workspace(self) -> Wanted:
        """Return a workspace of the flavor, which is in no database."""
        flavor = self.flavor
        row = Workspace(
            id=uuid4(),
            name="bare",
            tenant=self.tenant,
            owner=User(username="bare"),
            image=self.image,
            pool=flavor.pool,
            units=flavor.units,
            cpu_millicores=flavor.cpu_millicores,
            memory_mib=flavor.memory_mib,
            env={},
        )
        home = Volume(
            tenant=self.tenant,
            kind=Kind.HOME,
            access=Access.NODE,
            requested_mib=self.cluster.home_mib,
            storage_class=self.cluster.home_class,
        )
        return builders.wanted(
            row,
            mounts=[Mount(volume=home, path=HOME_PATH, read_only=False)],
            instance=self.instance,
            run=uuid4(),
            node="",
            requested_cpu_millicores=flavor.cpu_millicores,
            requested_memory_mib=flavor.memory_mib,
        )

    def _binds_before_a_pod(self) -> bool:
        """Return True if a home of the cluster's class binds at once, not when its first pod is scheduled."""
        classes = {body["metadata"]["name"]: body for body in self.api.list("StorageClass")}
        default = (
            name
            for name, body in classes.items()
            if (body["metadata"].get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class")
            == "true"
        )
        home_class = self.cluster.home_class or next(default, "")
        return classes.get(home_class, {}).get("volumeBindingMode", "Immediate") == "Immediate"

    def _connect(self, threads: ThreadPoolExecutor) -> None:
        """Open the connections before the time runs."""
        list(threads.map(lambda _: self.api.list("Namespace"), range(4 * THREADS)))


class Watches:
    """Watches of some kinds, all into one queue: (kind, name) of each object that is as it has to be."""

    def __init__(self, api: Api, kinds: Iterable[str], labels: dict[str, str]) -> None:
        self._api, self._labels = api, labels
        self._kinds = tuple(kinds)
        self._heard: queue.Queue[tuple[str, str]] = queue.Queue()

    def __enter__(self) -> queue.Queue[tuple[str, str]]:
        self._lines = [self._begin(kind) for kind in self._kinds]
        return self._heard

    def __exit__(self, *_of_error: object) -> None:
        for lines in self._lines:
            lines.close()

    def _begin(self, kind: str) -> Any:
        version = self._api.list_with_version(kind, labels=self._labels, keep=str)[1]
        lines = self._api.watch(
            kind,
            version=version,
            labels=self._labels,
            server_timeout_seconds=PATIENCE_SECONDS,
            read_timeout_seconds=PATIENCE_SECONDS,
        )
        told = set[str]()

        def listen() -> None:
            with suppress(ClusterError):
                for line in lines:
                    event = event_of(line)
                    name = event["object"]["metadata"].get("name", "")
                    if (
                        event["type"] in ("ADDED", "MODIFIED")
                        and name not in told
                        and DONE[kind](event["object"])
                    ):
                        told.add(name)
                        self._heard.put((kind, name))

        threading.Thread(target=listen, daemon=True).start()
        return lines


def _next(heard: queue.Queue[tuple[str, str]], sent: Iterable[Future[None]]) -> tuple[str, str]:
    """Return what was heard next. Raise the failure of a request, which would let everybody wait in vain."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with suppress(queue.Empty):
            return heard.get(timeout=1)
        for request in sent:
            if request.done():
                request.result()
        assert time.monotonic() < deadline, "nothing was heard any more"
