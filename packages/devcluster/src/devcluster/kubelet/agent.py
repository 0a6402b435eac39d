"""Kubelets of all nodes: a worker for every pod that is bound to one of them."""

import asyncio
from collections.abc import Callable, Mapping

from devcluster.api import Api
from devcluster.errors import ApiError
from devcluster.events import Recorder
from devcluster.fleet import Fleet, PlayedNode
from devcluster.gpuplay.devices import Devices
from devcluster.kubelet.admission import Ledger, Rejected, rejection
from devcluster.kubelet.containers.logs import PodLogs
from devcluster.kubelet.host import Host
from devcluster.kubelet.nodes.pressure import Reclaiming
from devcluster.kubelet.runtime import Container
from devcluster.kubelet.status import Outcome, lost
from devcluster.kubelet.worker import PodWorker
from devcluster.nodes import KUBELET
from devcluster.resources import NODE, POD, Obj
from devcluster.store import Change
from devcluster.values.clock import now

OVER = ("Failed", "Succeeded")


class Kubelets:
    def __init__(self, api: Api, host: Host, fleet: Fleet, devices: Devices):
        self._api, self._host, self._fleet = api, host, fleet
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._on: dict[str, dict[str, Obj]] = {}
        """The pods that have a worker, by node and uid."""
        self._ledger = Ledger(devices)
        self._cutting: dict[str, asyncio.Task[None]] = {}
        self._silent: set[str] = set()
        self._reclaiming = Reclaiming(api, self._pods_on, self._evict)
        self._stop_listening: Callable[[], None] | None = None

    def start(self) -> None:
        """Settle the pods that an earlier run left, then start a worker for every pod."""
        for pod in self._api.store.each(POD):
            if self._fleet.speaks(_node(pod)):
                self._resume(pod)
        self._stop_listening = self._api.store.listen(self._heard)
        self._fleet.listen(self._ailing)

    def _resume(self, pod: Obj) -> None:
        status = pod.get("status", {})
        began = bool(status.get("startTime"))
        if began and status.get("phase") not in OVER:
            pod = self._api.set_status(POD, pod, lost(pod), KUBELET) or pod
        if "deletionTimestamp" in pod["metadata"] and began:
            self._api.try_delete(POD, pod, grace_seconds=0)
        elif not began:
            self._take_up(pod)

    def _heard(self, change: Change) -> None:
        if change.kind is not POD:
            return
        pod, gone = change.obj, change.type == "DELETED"
        if self._fleet.speaks(_node(pod)):
            self._follow(pod, there=not gone)
        elif gone and pod["metadata"]["uid"] not in self._workers:
            self._host.clear(pod)  # a node that is off keeps nothing of a pod

    def _follow(self, pod: Obj, there: bool) -> None:
        uid, over = pod["metadata"]["uid"], pod.get("status", {}).get("phase") in OVER
        worker = self._workers.get(uid)
        if not there or over:
            self._ledger.leave(uid)
        if not there:
            if worker:
                worker.vanished()
            else:
                self._host.clear(pod)
        elif worker:
            worker.heard(pod)
        elif not over:
            self._take_up(pod)

    def _take_up(self, pod: Obj) -> None:
        if "deletionTimestamp" not in pod["metadata"] and (refused := self._refusal(pod)):
            self._reject(pod, refused)
            return
        self._ledger.enter(pod)
        uid = pod["metadata"]["uid"]
        worker = self._workers[uid] = PodWorker(self._api, self._host, pod)
        if "deletionTimestamp" in pod["metadata"]:
            worker.heard(pod)
        self._on.setdefault(_node(pod), {})[uid] = pod
        self._tasks[uid] = asyncio.ensure_future(self._work(worker, pod))

    def _refusal(self, pod: Obj) -> Rejected | None:
        node, found = self._fleet.get(_node(pod)), self._api.store.get(NODE, "", _node(pod))
        if node is None or found is None:
            return None
        return rejection(pod, node, found, self._ledger.used(node.name))

    def _reject(self, pod: Obj, why: Rejected) -> None:
        events = Recorder(self._api, KUBELET, _node(pod), KUBELET)
        events.event(POD, pod, "Warning", why.reason, why.message)
        ended = {"phase": "Failed", "reason": why.reason, "message": f"Pod was rejected: {why.message}"}
        kept = {"observedGeneration": pod["metadata"].get("generation", 1), "startTime": now()}
        qos = pod["status"].get("qosClass", "BestEffort")
        self._api.set_status(POD, pod, kept | ended | {"qosClass": qos}, KUBELET)

    async def _work(self, worker: PodWorker, pod: Obj) -> None:
        try:
            await worker.run()
        except ApiError:
            pass  # the pod was deleted while its worker ran
        finally:
            if self._workers.get(worker.uid) is worker:
                self._drop(pod)
            self._host.clear(pod)

    @property
    def logs(self) -> PodLogs:
        return self._host.logs

    def reach(self, pod: Obj, what: str) -> None:
        """Refuse, in the API server's words, if the pod's node does not answer."""
        node = self._api.store.get(NODE, "", _node(pod))
        if not node or self._fleet.speaks(_node(pod)):
            return
        addresses = [a["address"] for a in node["status"].get("addresses", []) if a["type"] == "InternalIP"]
        if not addresses:
            raise ApiError(500, "", "no preferred addresses found; known addresses: []")
        meta, endpoint = pod["metadata"], f"{addresses[0]}:10250"
        called = f"{meta['namespace']}/{meta['name']}/{pod['spec']['containers'][0]['name']}"
        doing = "error dialing backend" if what == "exec" else f'Get "https://{endpoint}/{what}/{called}"'
        raise ApiError(500, "", f"{doing}: dial tcp {endpoint}: i/o timeout")

    def running(self, pod: Obj, name: str) -> Container | None:
        """Return a pod's running container of this name, if any."""
        worker = self._workers.get(pod["metadata"]["uid"])
        return worker.container(name) if worker else None

    def containers(self, pod: Obj) -> Mapping[str, Container]:
        worker = self._workers.get(pod["metadata"]["uid"])
        return worker.containers if worker else {}

    def _ailing(self, node: PlayedNode) -> None:
        """Apply a change of the node's faults."""
        self._reclaiming.ailing(node)
        was_silent = node.name in self._silent
        if node.stopped:
            self._power_off(node.name)
        if node.silent and not was_silent:
            self._silent.add(node.name)
        elif was_silent and not node.silent:
            self._silent.discard(node.name)
            self._catch_up(node.name)

    def _pods_on(self, node: str) -> list[Obj]:
        pods = (
            self._api.store.get(POD, p["metadata"]["namespace"], p["metadata"]["name"])
            for p in self._on.get(node, {}).values()
        )
        return [p for p in pods if p and p.get("status", {}).get("phase") not in OVER]

    def _evict(self, pod: Obj, why: Outcome) -> None:
        if worker := self._workers.get(pod["metadata"]["uid"]):
            worker.evict(why)

    def _drop(self, pod: Obj) -> None:
        uid = pod["metadata"]["uid"]
        self._ledger.leave(uid)
        del self._workers[uid], self._tasks[uid], self._on[_node(pod)][uid]

    def _power_off(self, node: str) -> None:
        for uid, pod in list(self._on.get(node, {}).items()):
            self._tasks[uid].cancel()
            self._drop(pod)
            self._cutting[uid] = asyncio.ensure_future(self._cut(pod))

    async def _cut(self, pod: Obj) -> None:
        await self._host.runtime.forget(pod)
        self._cutting.pop(pod["metadata"]["uid"])

    def _catch_up(self, node: str) -> None:
        """End the pods that were deleted while the node was away, and report the others again."""
        there = {p["metadata"]["uid"]: p for p in self._api.store.each(POD) if _node(p) == node}
        for uid in set(self._on.get(node, {})) - set(there):
            self._workers[uid].vanished()
        for uid, pod in there.items():
            if known := self._workers.get(uid):
                known.refresh()
                self._follow(pod, there=True)
            else:
                self._resume(pod)

    async def close(self) -> None:
        """Stop as in a power loss: processes end at once, and no status is written."""
        if self._stop_listening:
            self._stop_listening()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await self._host.runtime.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._host.scratch.close()


def _node(pod: Obj) -> str:
    return str(pod["spec"].get("nodeName", ""))
