"""Names of Services and pods for process pods: an /etc/hosts for each pod, with what a cluster's DNS would answer.

A pod knows the names of its own namespace: `SERVICE` and `HOSTNAME.SERVICE`, alone and followed by `.NAMESPACE`,
`.NAMESPACE.svc` and `.NAMESPACE.svc.cluster.local`. As in DNS, a pod that is not ready has a name only if the Service
publishes such addresses, and HOSTNAME is that of a pod whose `subdomain` is the Service. A Service that is not headless
has its pods' addresses too: nothing answers at cluster IPs here.

The file lies in a folder of its own, which is mounted at FOLDER, and is replaced as a whole: no reader ever sees half
of it.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from devcluster.api import Api
from devcluster.controllers.base import Controller
from devcluster.controllers.services import endpoints
from devcluster.controllers.workloads.replicas import going, ready
from devcluster.kubelet.network.policies import address_of
from devcluster.resources import POD, SERVICE, Obj
from devcluster.store import Change

CLUSTER_DOMAIN = "cluster.local"
FOLDER = "/etc/names"
FILE = "hosts"
AGAIN_SECONDS = 1.0
log = logging.getLogger("devcluster")


def folder(state: Path, pod_uid: str) -> Path:
    """Return the folder of a pod's file on this machine."""
    return state / "names" / pod_uid


@dataclass
class _Hosts:
    """File of one pod."""

    namespace: str
    path: Path
    own: str
    table: str | None = None

    def write(self, table: str) -> None:
        """Replace the file if the names of the namespace changed."""
        if table == self.table:
            return
        fresh = self.path.with_suffix(".new")
        fresh.write_text(self.own + table)
        fresh.replace(self.path)
        self.table = table


class Names(Controller[str]):
    """Writer of the pods' /etc/hosts. The key is a namespace: changes that come together are written once."""

    def __init__(self, api: Api, state: Path):
        super().__init__(api)
        self._state = state
        self._tables: dict[str, str] = {}
        self._hosts: dict[str, _Hosts] = {}
        """By uid of the pod."""

    def enter(self, pod: Obj, address: str) -> None:
        """Write the file of a pod that starts, and keep it up to date from now on."""
        uid, namespace = pod["metadata"]["uid"], pod["metadata"]["namespace"]
        path = folder(self._state, uid)
        path.mkdir(exist_ok=True)
        hosts = _Hosts(namespace, path / FILE, own_lines(pod, address))
        hosts.write(self._tables.get(namespace, ""))
        self._hosts[uid] = hosts

    def leave(self, pod_uid: str) -> None:
        """Write no more to the file of a pod that has ended."""
        self._hosts.pop(pod_uid, None)

    def keys(self, change: Change) -> Iterable[str]:
        facts = {POD: _pod_facts, SERVICE: _service_facts}.get(change.kind)
        if facts is None:
            return
        before = facts(change.old) if change.old else None
        if (None if change.type == "DELETED" else facts(change.obj)) != before:
            yield change.obj["metadata"]["namespace"]

    async def reconcile(self, key: str) -> float | None:
        store = self.api.store
        table = "".join(lines(key, store.each(SERVICE, key), store.each(POD, key)))
        self._tables[key], well = table, True
        for uid in [uid for uid, hosts in self._hosts.items() if hosts.namespace == key]:
            try:
                if hosts := self._hosts.get(uid):
                    hosts.write(table)
            except OSError as error:
                log.warning("names for the pod %s: %s", uid, error)
                well = False
            await asyncio.sleep(0)
        return None if well else AGAIN_SECONDS


def _pod_facts(pod: Obj) -> object:
    meta, spec = pod["metadata"], pod["spec"]
    named = meta.get("labels"), spec.get("hostname"), spec.get("subdomain")
    return address_of(pod), ready(pod), going(pod), named


def _service_facts(service: Obj) -> object:
    spec = service["spec"]
    return spec.get("selector"), spec.get("publishNotReadyAddresses"), spec["type"]


def own_lines(pod: Obj, address: str) -> str:
    """Return the lines of a pod's own names, as the kubelet writes them."""
    spec, meta = pod["spec"], pod["metadata"]
    name = spec.get("hostname") or meta["name"]
    if subdomain := spec.get("subdomain"):
        name = f"{name}.{subdomain}.{meta['namespace']}.svc.{CLUSTER_DOMAIN}\t{name}"
    return f"127.0.0.1\tlocalhost\n{address}\t{name}\n"


def lines(namespace: str, services: Iterable[Obj], pods: Iterable[Obj]) -> Iterator[str]:
    """Yield the lines of all names in a namespace."""
    by_label: dict[tuple[str, str], list[Obj]] = {}
    for pod in sorted(pods, key=lambda p: str(p["metadata"]["name"])):
        for label in (pod["metadata"].get("labels") or {}).items():
            by_label.setdefault(label, []).append(pod)
    for service in sorted(services, key=lambda s: str(s["metadata"]["name"])):
        name = service["metadata"]["name"]
        found = list(_named(service, by_label))
        for pod in found:
            if pod["spec"].get("subdomain") == name and (host := pod["spec"].get("hostname")):
                yield _line(pod, f"{host}.{name}", namespace)
        yield from (_line(pod, name, namespace) for pod in found)


def _named(service: Obj, by_label: dict[tuple[str, str], list[Obj]]) -> Iterator[Obj]:
    """Yield the pods whose addresses a Service's name has."""
    spec = service["spec"]
    selector = spec.get("selector") or {}
    if not selector or spec["type"] == "ExternalName":
        return
    rarest = min((by_label.get(label, []) for label in selector.items()), key=len)
    for pod in endpoints(service, rarest):
        if spec.get("publishNotReadyAddresses") or not going(pod):
            yield pod


def _line(pod: Obj, name: str, namespace: str) -> str:
    near = f"{name}.{namespace}"
    return f"{pod['status']['podIP']}\t{near}.svc.{CLUSTER_DOMAIN} {name} {near} {near}.svc\n"
