"""Life of one container in a pod: image, start, hooks, probes, exit, restart with growing pauses."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from devcluster.faults.podfaults import PodFaults
from devcluster.kubelet.containers.actions import Connect, Errored, Failed, Place, act
from devcluster.kubelet.containers.backoff import BackOff, in_words
from devcluster.kubelet.containers.images import Images, image_id, normalized
from devcluster.kubelet.containers.plans import Planner
from devcluster.kubelet.containers.probes import Prober
from devcluster.kubelet.containers.pulling import RESYNC_SECONDS, Puller, Tell
from devcluster.kubelet.processes.sessions import KILLED
from devcluster.kubelet.runtime import CannotRun, Container, Exit, Runtime, container_id
from devcluster.kubelet.status import ContainerState
from devcluster.nodes import Image, Pauses
from devcluster.resources import Obj

LEAST_GRACE_SECONDS = 2.0
"""What a container has to end after its preStop hook took all the time there was."""


@dataclass(frozen=True)
class Surroundings:
    """Things that all containers of one pod share."""

    pod: Obj
    address: str
    runtime: Runtime
    images: Images
    pauses: Pauses
    ready_seconds: float
    connect: Connect
    changed: Callable[[], None]
    """A container's state is another now."""
    faults: PodFaults


class ContainerLife:
    def __init__(self, spec: Obj, state: ContainerState, around: Surroundings, planner: Planner, tell: Tell):
        self.state = state
        self.began = asyncio.Event()
        """It has started, its startup probe too: the next init container may go."""
        self.container: Container | None = None
        """While it runs."""
        self._spec, self._around, self._planner, self._tell = spec, around, planner, tell
        self._hurrying: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run the container until it has ended for good."""
        back_off = BackOff(self._around.pauses, at_once=True)
        while True:
            image = await self._puller().image()
            exit_, ran_seconds = await self._once(image)
            self._end(exit_)
            if not self._again(exit_.code):
                self.state.ended = True
                self._around.changed()
                return
            self._around.changed()
            if pause := back_off.next(ran_seconds):
                await self._back_off(pause)
            self.state.restart()

    async def stop(self, grace_seconds: float) -> None:
        """Stop the container for good. The caller must make sure that `run` does not start it again."""
        if container := self.container:
            waiting = asyncio.ensure_future(container.wait())
            await self._stop(container, grace_seconds, self._stopping)
            self._end(await waiting)
            self.container = None

    def hurry(self) -> None:
        if self.container is not None:
            self._hurrying = asyncio.ensure_future(self.container.stop(0))

    def _again(self, code: int) -> bool:
        policy = self._around.pod["spec"]["restartPolicy"]
        if self.state.sidecar:
            return True
        if policy == "Never" or (code == 0 and self.state.init):
            return False
        return policy == "Always" or code != 0

    def _end(self, exit_: Exit) -> None:
        exit_ = self._planner.explained(exit_, self.state.restarts)
        self.state.end(exit_.code, exit_.reason, exit_.message)

    async def _back_off(self, pause: float) -> None:
        meta, name = self._around.pod["metadata"], self.state.name
        where = f"{meta['name']}_{meta['namespace']}({meta['uid']})"
        told = f"back-off {in_words(pause)} restarting failed container={name} pod={where}"
        self.state.wait("CrashLoopBackOff", told)
        self._around.changed()
        self._tell("Warning", "BackOff", f"Back-off restarting failed container {name} in pod {where}")
        await asyncio.sleep(pause)

    def _puller(self) -> Puller:
        return Puller(
            images=self._around.images,
            node=self._around.pod["spec"]["nodeName"],
            reference=self._spec["image"],
            policy=self._spec["imagePullPolicy"],
            pauses=self._around.pauses,
            state=self.state,
            tell=self._tell,
            changed=self._around.changed,
        )

    async def _once(self, image: Image) -> tuple[Exit, float]:
        """Start the container and wait for its exit. Return the exit, and how many seconds it ran."""
        try:
            container = await self._start(image)
        except CannotRun as error:  # it was created, but did not start
            return Exit(128, error.reason, error.message), 0.0
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.container = container
        self._tell("Normal", "Started", "Container started")
        minding = asyncio.ensure_future(self._mind(container))
        try:
            exit_ = await container.wait()
        finally:
            minding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await minding
        self.container = None
        return exit_, loop.time() - began

    async def _start(self, image: Image) -> Container:
        """Try until the container is created; raise CannotRun if it then does not start."""
        while True:
            try:
                container = await self._made(image)
            except CannotRun as error:
                if error.reason == "StartError":
                    self._created(container_id())
                    self._tell("Warning", "Failed", f"Error: {error.message}")
                    raise
                self._tell("Warning", "Failed", f"Error: {error.message}")
                self.state.wait(error.reason, error.message)
                self._around.changed()
                await asyncio.sleep(RESYNC_SECONDS / 2)
            else:
                self._created(container.id)
                return container

    async def _made(self, image: Image) -> Container:
        if why := self._around.faults.of_container(self._around.pod, self._spec):
            raise CannotRun("StartError", why)
        try:
            return await self._around.runtime.start(self._planner.plan(image, self.state.restarts))
        except OSError as error:
            raise CannotRun(
                "CreateContainerError", f"failed to create containerd container: {error}"
            ) from error

    def _created(self, container_id: str) -> None:
        reference = self._spec["image"]
        self.state.create(container_id, normalized(reference), image_id(reference))
        self._tell("Normal", "Created", "Container created")

    async def _mind(self, container: Container) -> None:
        """Run the postStart hook, then the probes, while the container runs."""
        if not self._around.runtime.real:
            await self._play()
        elif await self._hook(container, "postStart"):
            self.state.run()
            await self._probe(container)
        else:
            await self._stop(container, self._grace_seconds, "FailedPostStartHook")

    async def _play(self) -> None:
        self.state.run()
        self._seen(started=True, ready=False)
        await asyncio.sleep(self._around.ready_seconds)
        self._seen(started=True, ready=True)

    async def _probe(self, container: Container) -> None:
        def changed() -> None:
            self._seen(started=prober.gate.started, ready=prober.gate.ready)

        prober = Prober(self._place(container), changed, lambda why: self._tell("Warning", "Unhealthy", why))
        changed()
        name, probe = await prober.run()
        grace = probe.get("terminationGracePeriodSeconds", self._grace_seconds)
        why = f"Container {self.state.name} failed {name} probe, will be restarted"
        await self._stop(container, grace, why if self._again(KILLED) else self._stopping)

    async def _stop(self, container: Container, grace_seconds: float, why: str) -> None:
        """Run the preStop hook, then send SIGTERM, then SIGKILL, all within the grace period."""
        self._tell("Normal", "Killing", why)
        began = asyncio.get_running_loop().time()
        if grace_seconds and self._around.runtime.real:
            await self._hook(container, "preStop", grace_seconds)
            took = asyncio.get_running_loop().time() - began
            grace_seconds = max(grace_seconds - took, LEAST_GRACE_SECONDS)
        await container.stop(grace_seconds)

    async def _hook(self, container: Container, name: str, most_seconds: float | None = None) -> bool:
        """Run a hook. Return False if it failed; True too if there is none."""
        hook = (self._spec.get("lifecycle") or {}).get(name)
        try:
            async with asyncio.timeout(most_seconds):
                if hook:
                    await act(self._place(container), hook, None)
        except (Failed, Errored, TimeoutError):
            word = name[0].upper() + name[1:]
            self._tell("Warning", f"Failed{word}Hook", f"{word}Hook failed")
            return False
        return True

    def _place(self, container: Container) -> Place:
        return Place(container, self._spec, self._around.address, self._around.connect)

    def _seen(self, *, started: bool, ready: bool) -> None:
        self.state.started, self.state.ready = started, ready
        if started:
            self.began.set()
        self._around.changed()

    @property
    def _stopping(self) -> str:
        return f"Stopping container {self.state.name}"

    @property
    def _grace_seconds(self) -> float:
        return float(self._around.pod["spec"]["terminationGracePeriodSeconds"])
