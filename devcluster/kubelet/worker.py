"""One pod on one node, from its binding to its end. The end is always told before the pod goes."""

import asyncio
import contextlib
import logging

from devcluster.api import Api
from devcluster.errors import ApiError
from devcluster.events import Recorder
from devcluster.kubelet.containers import ContainerLife, make_plan
from devcluster.kubelet.host import Host
from devcluster.kubelet.runtime import ContainerPlan
from devcluster.kubelet.status import pod_status
from devcluster.kubelet.volumes import NotReady, PodVolumes
from devcluster.nodes import KUBELET, Image
from devcluster.resources import POD, Kind, Obj
from devcluster.storage import claims_of

log = logging.getLogger("devcluster")
RENEW_SECONDS = 5.0
"""How often what was written from Secrets and ConfigMaps is compared with them."""


class PodWorker:
    def __init__(self, api: Api, host: Host, pod: Obj):
        self._api, self._host, self._pod = api, host, pod
        meta = pod["metadata"]
        self._namespace, self._name, self.uid = meta["namespace"], meta["name"], meta["uid"]
        self._events = Recorder(api, KUBELET, pod["spec"]["nodeName"], KUBELET)
        self._lives: list[ContainerLife] = []
        self._volumes: PodVolumes | None = None
        self._address = ""
        self._dirty = asyncio.Event()
        self._stop_asked = asyncio.Event()
        self._ended = False

    def deletion(self, pod: Obj) -> None:
        """The pod has a deletionTimestamp now, or a shorter grace than before."""
        self._pod = pod
        if self._stop_asked.is_set() and not pod["metadata"].get("deletionGracePeriodSeconds"):
            self.vanished()
        self._stop_asked.set()

    def vanished(self) -> None:
        """The object is gone by force: its processes end at once all the same."""
        self._stop_asked.set()
        for life in self._lives:
            life.hurry()

    def refresh(self) -> None:
        """Tell its status again: nobody heard it for a while."""
        self._dirty.set()

    async def run(self) -> None:
        living = asyncio.ensure_future(self._live())
        asked = asyncio.ensure_future(self._stop_asked.wait())
        writing = asyncio.ensure_future(self._write_statuses())
        try:
            await asyncio.wait([living, asked], return_when=asyncio.FIRST_COMPLETED)
            if living.done() and living.exception():
                log.error("pod %s/%s", self._namespace, self._name, exc_info=living.exception())
            await asked
            living.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await living
            await self._terminate()
        finally:
            for task in (living, asked, writing):
                task.cancel()

    async def _live(self) -> None:
        self._address = self._host.take_address(self._pod)
        self._lives = [self._life(spec) for spec in self._pod["spec"]["containers"]]
        self._volumes = await self._set_up_volumes()
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(self._renew()) if self._volumes else None
            await asyncio.gather(*(life.run() for life in self._lives))
            if renewing:
                renewing.cancel()
        self._ended = True
        self._write_status()

    def _life(self, spec: Obj) -> ContainerLife:
        path = f"spec.containers{{{spec['name']}}}"

        def tell(level: str, reason: str, message: str) -> None:
            self._events.event(POD, self._pod, level, reason, message, path)

        def plan(image: Image, attempt: int) -> ContainerPlan:
            mounts = self._volumes.mounts(spec) if self._volumes else []
            log_path = self._host.logs.path(self._pod, spec["name"], attempt)
            return make_plan(
                pod=self._pod,
                spec=spec,
                image=image,
                address=self._address,
                lookup=self._lookup,
                mounts=mounts,
                log=log_path,
            )

        return ContainerLife(
            pod=self._pod,
            spec=spec,
            runtime=self._host.runtime,
            images=self._host.images,
            address=self._address,
            connect=self._host.network.connect,
            plan=plan,
            tell=tell,
            changed=self._dirty.set,
            ready_seconds=self._host.ready_seconds,
        )

    def _lookup(self, kind: Kind, name: str) -> Obj | None:
        return self._api.store.get(kind, self._namespace, name)

    async def _set_up_volumes(self) -> PodVolumes | None:
        volumes = self._host.volumes(self._pod, self._lookup) if self._host.runtime.real else None
        if volumes or claims_of(self._pod):
            self._dirty.set()
        while True:
            try:
                disks = await self._host.mounting.mount(self._pod)
                if volumes:
                    volumes.disks = disks
                    volumes.write(self._address)
                return volumes
            except NotReady as error:
                self._events.event(POD, self._pod, "Warning", "FailedMount", str(error))
            await asyncio.sleep(1.0)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            if self._volumes:
                with contextlib.suppress(NotReady):
                    self._volumes.write(self._address)

    async def _write_statuses(self) -> None:
        """Fold changes that come together into one write."""
        while True:
            await self._dirty.wait()
            await asyncio.sleep(0.02)
            self._dirty.clear()
            self._write_status()

    def _write_status(self) -> None:
        pod = self._api.store.get(POD, self._namespace, self._name)
        if pod is None or pod["metadata"]["uid"] != self.uid or not self._host.reachable(pod):
            return
        states = [life.state for life in self._lives]
        status = pod_status(pod, states, self._address, ended=self._ended)
        with contextlib.suppress(ApiError):
            self._api.set_status(POD, pod, status, KUBELET)

    async def _terminate(self) -> None:
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds", 30)
        await self._host.until_reachable(self._pod)
        await asyncio.gather(*(life.stop(grace) for life in self._lives))
        self._ended = True
        for life in self._lives:
            life.state.ended = True
            if "terminated" not in life.state.state:
                life.state.end(
                    137,
                    "ContainerStatusUnknown",
                    "The container could not be located when the pod was deleted",
                )
        await self._host.runtime.forget(self._pod)
        await self._host.until_reachable(self._pod)
        self._write_status()
        self._api.try_delete(POD, self._pod, grace_seconds=0)
