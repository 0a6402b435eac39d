"""Worker of one pod on one node, from its binding to its end. The end is reported before the pod is removed."""

import asyncio
import contextlib
import logging
import sqlite3

from devcluster.api import Api
from devcluster.errors import ApiError
from devcluster.events import Recorder
from devcluster.kubelet.containers.life import ContainerLife, Surroundings
from devcluster.kubelet.containers.plans import Planner
from devcluster.kubelet.host import Host
from devcluster.kubelet.runtime import Container
from devcluster.kubelet.status import ContainerState, Outcome, pod_status
from devcluster.kubelet.storage import ephemeral
from devcluster.kubelet.storage.volumes import NotReady, PodVolumes
from devcluster.nodes import KUBELET
from devcluster.resources import POD, Kind, Obj
from devcluster.storage import claims_of

log = logging.getLogger("devcluster")
RENEW_SECONDS = 5.0
"""How often what was written from Secrets and ConfigMaps is compared with them."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.5, 8.0
FULL_DISK_PAUSE_SECONDS = 1.0
DEADLINE = Outcome("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


class PodWorker:
    def __init__(self, api: Api, host: Host, pod: Obj):
        self._api, self._host, self._pod = api, host, pod
        meta = pod["metadata"]
        self._namespace, self._name, self.uid = meta["namespace"], meta["name"], meta["uid"]
        self._events = Recorder(api, KUBELET, pod["spec"]["nodeName"], KUBELET)
        spec = pod["spec"]
        waiting_for = "PodInitializing" if spec.get("initContainers") else "ContainerCreating"
        self._init_specs: list[Obj] = spec.get("initContainers") or []
        inits = [ContainerState(s, waiting_for, init=True) for s in self._init_specs]
        mains = [ContainerState(s, waiting_for) for s in spec["containers"]]
        self._states = [*inits, *mains]
        self._inits: list[ContainerLife] = []
        self._mains: list[ContainerLife] = []
        self._sidecars: dict[ContainerLife, asyncio.Task[None]] = {}
        self._volumes: PodVolumes | None = None
        self._address = ""
        self._sandboxed = False
        self._gates: list[Obj] = []
        self._dirty = asyncio.Event()
        self._stop_asked = asyncio.Event()
        self._ended = False
        self._evicted = asyncio.Event()
        self._eviction: Outcome | None = None
        self._outcome: Outcome | None = None

    def heard(self, pod: Obj) -> None:
        """React to a change of the pod: a deletion, a shorter grace period, or a readiness gate."""
        if "deletionTimestamp" in pod["metadata"]:
            self._pod = pod
            if self._stop_asked.is_set() and not pod["metadata"].get("deletionGracePeriodSeconds"):
                self.vanished()
            self._stop_asked.set()
        elif gates := pod["spec"].get("readinessGates"):
            kinds = {g["conditionType"] for g in gates}
            given = [c for c in pod["status"].get("conditions", []) if c["type"] in kinds]
            if given != self._gates:
                self._gates = given
                self._dirty.set()

    def vanished(self) -> None:
        """End the processes of a pod that was removed by force."""
        self._stop_asked.set()
        for life in (*self._inits, *self._mains):
            life.hurry()

    def container(self, name: str) -> Container | None:
        """Return the pod's running container of this name, if any."""
        lives = (*self._inits, *self._mains)
        return next((life.container for life in lives if life.state.name == name), None)

    @property
    def containers(self) -> dict[str, Container]:
        """Running containers except init containers, which soon end."""
        lasting = [life for life in (*self._inits, *self._mains) if life.state.sidecar or not life.state.init]
        return {life.state.name: life.container for life in lasting if life.container}

    def evict(self, why: Outcome) -> None:
        """End the pod now; its object stays, with the reason."""
        self._eviction = why
        self._evicted.set()

    def _tell(self, level: str, reason: str, message: str, path: str = "") -> None:
        """Record an event, unless the node is silent."""
        if self._host.reachable(self._pod):
            self._events.event(POD, self._pod, level, reason, message, path)

    def refresh(self) -> None:
        """Report the status again, after a time when it reached nobody."""
        self._dirty.set()

    async def run(self) -> None:
        asked = asyncio.ensure_future(self._stop_asked.wait())
        evicted = asyncio.ensure_future(self._evicted.wait())
        writing = asyncio.ensure_future(self._write_statuses())
        living = asyncio.ensure_future(self._live())
        try:
            await asyncio.wait(
                [living, asked, evicted], timeout=self._deadline(), return_when=asyncio.FIRST_COMPLETED
            )
            if living.done() and living.exception():
                log.error("pod %s/%s", self._namespace, self._name, exc_info=living.exception())
            if not living.done() and not asked.done():
                await self._cut_short(living, self._eviction or DEADLINE)
            await asked
            await _cancelled(living)
            await self._terminate()
        finally:
            for task in (living, asked, evicted, writing):
                task.cancel()

    def _deadline(self) -> float | None:
        seconds: float | None = self._pod["spec"].get("activeDeadlineSeconds")
        return seconds

    async def _cut_short(self, living: "asyncio.Future[None]", why: Outcome) -> None:
        self._tell(why.level, why.reason, why.message)
        await _cancelled(living)
        grace = why.grace_seconds
        await self._stop_containers(
            self._pod["spec"]["terminationGracePeriodSeconds"] if grace is None else grace
        )
        self._outcome = why
        await self._finish()

    async def _live(self) -> None:
        await self._set_up()
        self._make_lives()
        async with asyncio.TaskGroup() as group:
            minding = [self._renew(), self._measure()] if self._volumes else []
            tasks = [group.create_task(task) for task in minding]
            if await self._initialize(group):
                await asyncio.gather(*(life.run() for life in self._mains))
            await self._stop_sidecars(self._pod["spec"]["terminationGracePeriodSeconds"])
            for task in tasks:
                task.cancel()
        self._write_status()  # as a kubelet: the ends of the containers first, then that of the pod
        await self._finish()

    def _make_lives(self) -> None:
        around = Surroundings(
            pod=self._pod,
            address=self._address,
            runtime=self._host.runtime,
            images=self._host.images,
            pauses=self._host.pauses,
            ready_seconds=self._host.ready_seconds,
            connect=self._host.network.connect,
            changed=self._dirty.set,
            faults=self._host.pod_faults,
        )
        specs = [*self._init_specs, *self._pod["spec"]["containers"]]
        lives = [self._life(spec, state, around) for spec, state in zip(specs, self._states, strict=True)]
        self._inits = [life for life in lives if life.state.init]
        self._mains = [life for life in lives if not life.state.init]

    async def _initialize(self, group: asyncio.TaskGroup) -> bool:
        """Run the init containers in order; a sidecar only has to start. Return False if one failed for good."""
        for life in self._inits:
            if life.state.sidecar:
                self._sidecars[life] = group.create_task(life.run())
                await life.began.wait()
            else:
                await life.run()
                if not life.state.initialized:
                    return False
        return True

    async def _stop_sidecars(self, grace_seconds: float) -> None:
        """Stop the sidecars, the last one to start first."""
        for life, running in reversed(self._sidecars.items()):
            await _cancelled(running)
            await life.stop(grace_seconds)

    def _life(self, spec: Obj, state: ContainerState, around: Surroundings) -> ContainerLife:
        path = f"spec.{'initContainers' if state.init else 'containers'}{{{spec['name']}}}"

        def tell(level: str, reason: str, message: str) -> None:
            self._tell(level, reason, message, path)

        planner = Planner(
            pod=self._pod,
            spec=spec,
            address=self._address,
            lookup=self._lookup,
            volumes=self._volumes,
            logs=self._host.logs.folder(self._pod, spec["name"]),
        )
        return ContainerLife(spec, state, around, planner, tell)

    def _lookup(self, kind: Kind, name: str) -> Obj | None:
        return self._api.store.get(kind, self._namespace, name)

    async def _set_up(self) -> None:
        """Set up the pod's address and volumes; report failures and try again."""
        self._address = self._host.take_address(self._pod)
        volumes = self._host.volumes(self._pod, self._lookup) if self._host.runtime.real else None
        if volumes or claims_of(self._pod):
            self._dirty.set()
        pause = FIRST_RETRY_SECONDS
        while not self._sandboxed:
            try:
                await self._mount(volumes)
                reason, why = "FailedCreatePodSandBox", self._host.pod_faults.of_sandbox(self._pod)
            except NotReady as error:
                reason, why = "FailedMount", str(error)
            self._sandboxed = not why
            if why:
                self._tell("Warning", reason, why)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_RETRY_SECONDS)
        self._volumes = volumes

    async def _mount(self, volumes: PodVolumes | None) -> None:
        disks = await self._host.mounting.mount(self._pod)
        if volumes is None:
            return
        volumes.disks = disks
        try:
            await self._host.scratch.make(self._pod)
            volumes.write(self._address)
            self._host.names.enter(self._pod, self._address)
        except OSError as error:
            raise NotReady(f"MountVolume.SetUp failed: {error}") from error

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            if self._volumes:
                with contextlib.suppress(NotReady, OSError):
                    self._volumes.write(self._address)

    async def _measure(self) -> None:
        """Evict the pod if it writes more outside its volumes than its limits allow."""
        while True:
            await asyncio.sleep(ephemeral.LOOK_SECONDS)
            if why := await self._host.scratch.excess(self._pod):
                self.evict(Outcome("Evicted", why, level="Warning", grace_seconds=0))

    async def _write_statuses(self) -> None:
        """Write the status; combine changes that come together."""
        while True:
            await self._dirty.wait()
            await asyncio.sleep(0.02)
            self._dirty.clear()
            if not self._write_status():
                await asyncio.sleep(FULL_DISK_PAUSE_SECONDS)

    def _write_status(self) -> bool:
        """Write the status, unless the pod has a final one. Return False if the disk is full: write it again then."""
        pod = self._api.store.get(POD, self._namespace, self._name)
        if pod is None or pod["metadata"]["uid"] != self.uid or not self._host.reachable(pod):
            return True
        if pod["status"]["phase"] in ("Succeeded", "Failed"):
            return True
        address = self._address if self._sandboxed else ""
        status = pod_status(pod, self._states, address, ended=self._ended, outcome=self._outcome)
        try:
            self._api.set_status(POD, pod, status, KUBELET)
        except ApiError:
            pass
        except sqlite3.OperationalError:
            self._dirty.set()
            return False
        return True

    async def _finish(self) -> None:
        """Write the final status and release the pod's resources: no container will run again."""
        self._ended = True
        initialized = all(s.sidecar or s.initialized for s in self._states if s.init)
        for state in self._states:
            state.give_up(known=initialized)
        self._write_status()
        await self._host.runtime.forget(self._pod)
        self._host.give_back(self.uid)

    async def _stop_containers(self, grace_seconds: float) -> None:
        began = asyncio.get_running_loop().time()
        ordinary = [life for life in self._inits if not life.state.sidecar]
        await asyncio.gather(*(life.stop(grace_seconds) for life in (*ordinary, *self._mains)))
        left = max(grace_seconds - (asyncio.get_running_loop().time() - began), 0)
        await self._stop_sidecars(left)

    async def _terminate(self) -> None:
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds", 30)
        await self._host.until_reachable(self._pod)
        await self._stop_containers(grace)
        await self._host.runtime.forget(self._pod)
        await self._host.until_reachable(self._pod)
        await self._finish()
        self._api.try_delete(POD, self._pod, grace_seconds=0)


async def _cancelled(task: "asyncio.Future[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
