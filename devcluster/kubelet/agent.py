"""The kubelets: a worker for every pod that is bound to a node."""

import asyncio
from collections.abc import Callable

from devcluster.api import Api
from devcluster.errors import ApiError
from devcluster.kubelet.host import Host
from devcluster.kubelet.status import lost
from devcluster.kubelet.worker import PodWorker
from devcluster.nodes import KUBELET
from devcluster.resources import POD, Obj
from devcluster.store import Change


class Kubelets:
    def __init__(self, api: Api, host: Host):
        self._api, self._host = api, host
        self._workers: dict[str, PodWorker] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop_listening: Callable[[], None] | None = None

    def start(self) -> None:
        """Settle what an earlier run left, then take up every pod there is."""
        for pod in self._api.store.each(POD):
            if pod["spec"].get("nodeName"):
                self._resume(pod)
        self._stop_listening = self._api.store.listen(self._heard)

    def _resume(self, pod: Obj) -> None:
        status = pod.get("status", {})
        began = bool(status.get("startTime"))
        if began and status.get("phase") not in ("Failed", "Succeeded"):
            pod = self._api.set_status(POD, pod, lost(pod), KUBELET) or pod
            began = True
        if "deletionTimestamp" in pod["metadata"] and began:
            self._api.try_delete(POD, pod, grace_seconds=0)
        elif not began:
            self._take_up(pod)

    def _heard(self, change: Change) -> None:
        if change.kind is not POD or not change.obj["spec"].get("nodeName"):
            return
        pod, uid = change.obj, change.obj["metadata"]["uid"]
        worker = self._workers.get(uid)
        if change.type == "DELETED":
            if worker:
                worker.vanished()
            else:
                self._host.clear(pod)
        elif worker and "deletionTimestamp" in pod["metadata"]:
            worker.deletion(pod)
        elif worker is None and pod.get("status", {}).get("phase") not in ("Failed", "Succeeded"):
            self._take_up(pod)

    def _take_up(self, pod: Obj) -> None:
        uid = pod["metadata"]["uid"]
        worker = self._workers[uid] = PodWorker(self._api, self._host, pod)
        if "deletionTimestamp" in pod["metadata"]:
            worker.deletion(pod)
        task = asyncio.ensure_future(self._work(worker, pod))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, worker: PodWorker, pod: Obj) -> None:
        try:
            await worker.run()
        except ApiError:
            pass  # the pod went away under the worker
        finally:
            self._workers.pop(worker.uid, None)
            self._host.clear(pod)

    async def close(self) -> None:
        """As a power loss: no status is written any more, processes end at once."""
        if self._stop_listening:
            self._stop_listening()
        for task in list(self._tasks):
            task.cancel()
        await self._host.runtime.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
