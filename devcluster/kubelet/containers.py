"""One container's life within a pod: image, configuration, start, probes, exit, restart with growing pauses."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from devcluster.kubelet import config
from devcluster.kubelet.images import Images, InvalidName, Pulled, PullError
from devcluster.kubelet.probes import Prober
from devcluster.kubelet.runtime import CannotRun, Container, ContainerPlan, Exit, Mount, Runtime
from devcluster.kubelet.status import ContainerState
from devcluster.kubelet.users import host_uid
from devcluster.network import Connect
from devcluster.nodes import Image
from devcluster.quantity import whole
from devcluster.resources import Obj

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 300.0
STEADY_SECONDS = 600.0
"""A container that ran this long starts again without a pause."""
Tell = Callable[[str, str, str], None]
"""Level, reason, message of an event."""
Plan = Callable[[Image, int], ContainerPlan]


class ContainerLife:
    def __init__(
        self,
        *,
        pod: Obj,
        spec: Obj,
        runtime: Runtime,
        images: Images,
        address: str,
        connect: Connect,
        plan: Plan,
        tell: Tell,
        changed: Callable[[], None],
        ready_seconds: float,
    ):
        self.state = ContainerState(spec["name"], spec["image"])
        self._pod, self._spec, self._runtime, self._images = pod, spec, runtime, images
        self._address, self._connect = address, connect
        self._plan, self._tell, self._changed = plan, tell, changed
        self._ready_seconds = ready_seconds
        self._container: Container | None = None
        self._hurrying: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Until the container has ended for good."""
        pause = 0.0
        while True:
            image = await self._image()
            exit_, ran_seconds = await self._once(image)
            self.state.end(exit_.code, exit_.reason, exit_.message)
            policy = self._pod["spec"]["restartPolicy"]
            if policy == "Never" or (policy == "OnFailure" and exit_.code == 0):
                self.state.ended = True
                self._changed()
                return
            self._changed()
            if ran_seconds > STEADY_SECONDS:
                pause = 0.0
            if pause:
                await self._back_off(pause)
            pause = min(pause * 2, LONGEST_PAUSE) if pause else FIRST_PAUSE
            self.state.last_state = self.state.state
            self.state.restarts += 1

    async def stop(self, grace_seconds: float) -> None:
        if self._container is None:
            return
        self._tell("Normal", "Killing", f"Stopping container {self.state.name}")
        waiting = asyncio.ensure_future(self._container.wait())
        await self._container.stop(grace_seconds)
        exit_ = await waiting
        self.state.end(exit_.code, exit_.reason, exit_.message)

    def hurry(self) -> None:
        if self._container is not None:
            self._hurrying = asyncio.ensure_future(self._container.stop(0))

    async def _back_off(self, pause: float) -> None:
        meta = self._pod["metadata"]
        where = f"{meta['name']}_{meta['namespace']}({meta['uid']})"
        short = f"{int(pause // 60)}m{int(pause % 60)}s" if pause >= 60 else f"{int(pause)}s"
        self.state.wait(
            "CrashLoopBackOff", f"back-off {short} restarting failed container={self.state.name} pod={where}"
        )
        self._changed()
        self._tell(
            "Warning", "BackOff", f"Back-off restarting failed container {self.state.name} in pod {where}"
        )
        await asyncio.sleep(pause)

    async def _image(self) -> Image:
        reference, policy = self._spec["image"], self._spec["imagePullPolicy"]
        node = self._pod["spec"]["nodeName"]
        try:
            self._images.check(reference)
        except InvalidName:
            why = f'couldn\'t parse image name "{reference}": invalid reference format'
            self._tell("Warning", "InspectFailed", f'Failed to apply default image tag "{reference}": {why}')
            self._tell("Warning", "Failed", "Error: InvalidImageName")
            self._wait("InvalidImageName", f'Failed to apply default image tag "{reference}": {why}')
            await asyncio.Event().wait()
        image = self._images.find(reference)
        if image and policy != "Always" and self._images.present(node, reference):
            self._tell("Normal", "Pulled", f'Container image "{reference}" already present on machine')
            return image
        if policy == "Never":
            why = f'Container image "{reference}" is not present with pull policy of Never'
            self._tell("Warning", "ErrImageNeverPull", why)
            self._wait("ErrImageNeverPull", why)
            await asyncio.Event().wait()
        return (await self._pull(node, reference)).image

    async def _pull(self, node: str, reference: str) -> Pulled:
        pause = FIRST_PAUSE
        while True:
            self._tell("Normal", "Pulling", f'Pulling image "{reference}"')
            try:
                pulled = await self._images.pull(node, reference)
            except PullError as error:
                self._tell("Warning", "Failed", f'Failed to pull image "{reference}": {error}')
                self._tell("Warning", "Failed", "Error: ErrImagePull")
                self._wait("ErrImagePull", str(error))
                await asyncio.sleep(1.0)
                self._tell("Normal", "BackOff", f'Back-off pulling image "{reference}"')
                self._tell("Warning", "Failed", "Error: ImagePullBackOff")
                self._wait("ImagePullBackOff", f'Back-off pulling image "{reference}": ErrImagePull: {error}')
                await asyncio.sleep(pause - 1.0)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            took = f"{pulled.seconds:g}s"
            size = pulled.image.size_mib * 2**20
            self._tell(
                "Normal",
                "Pulled",
                f'Successfully pulled image "{reference}" in {took} ({took} including waiting).'
                f" Image size: {size} bytes.",
            )
            return pulled

    def _wait(self, reason: str, message: str) -> None:
        self.state.wait(reason, message)
        self._changed()

    async def _once(self, image: Image) -> tuple[Exit, float]:
        """Start it and see it through to its exit."""
        loop = asyncio.get_running_loop()
        container = await self._start(image)
        self._container = container
        self._tell("Normal", "Created", "Container created")
        self._tell("Normal", "Started", "Container started")
        self.state.image_id = f"{self._spec['image']}@devcluster"
        self.state.run(container.id)
        began = loop.time()
        probing = asyncio.ensure_future(self._probe(container))
        self._changed()
        try:
            exit_ = await container.wait()
        finally:
            probing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await probing
        self._container = None
        return exit_, loop.time() - began

    async def _start(self, image: Image) -> Container:
        while True:
            try:
                return await self._runtime.start(self._plan(image, self.state.restarts))
            except CannotRun as error:
                self._tell("Warning", "Failed", f"Error: {error.message}")
                self._wait(error.reason, error.message)
            await asyncio.sleep(5.0)

    async def _probe(self, container: Container) -> None:
        """Set `started` and `ready` as the probes say, and end a container that fails for good."""
        if not self._runtime.real:
            self.state.started = True
            await asyncio.sleep(self._ready_seconds)
            self.state.ready = True
            self._changed()
            return

        def seen() -> None:
            self.state.started, self.state.ready = prober.gate.started, prober.gate.ready
            self._changed()

        def unhealthy(why: str) -> None:
            self._tell("Warning", "Unhealthy", why)

        prober = Prober(self._spec, self._address, self._connect, seen, unhealthy)
        self.state.started, self.state.ready = prober.gate.started, prober.gate.ready
        self._changed()
        if failed := await prober.run():
            self._tell(
                "Normal", "Killing", f"Container {self.state.name} failed {failed} probe, will be restarted"
            )
            await container.stop(self._pod["spec"]["terminationGracePeriodSeconds"])


def make_plan(
    *, pod: Obj, spec: Obj, image: Image, address: str, lookup: config.Lookup, mounts: list[Mount], log: Path
) -> ContainerPlan:
    """The plan of one start; CannotRun where the configuration does not allow it."""
    uid, gid, groups = config.user(pod, spec, image)
    env = config.environment(pod, spec, address, lookup)
    meta = pod["metadata"]
    return ContainerPlan(
        pod_uid=meta["uid"],
        name=spec["name"],
        hostname=pod["spec"].get("hostname") or meta["name"],
        address=address,
        image=image,
        command=config.command(spec, image, env),
        env=env,
        working_dir=spec.get("workingDir", ""),
        uid=uid,
        gid=gid,
        groups=groups,
        host_uid=host_uid(pod),
        memory_bytes=whole(spec.get("resources", {}).get("limits", {}).get("memory", "0")),
        log=log,
        mounts=mounts,
    )
