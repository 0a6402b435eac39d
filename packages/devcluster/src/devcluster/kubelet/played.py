"""Simulated pods: no processes, only the phases, so that thousands of pods cost next to nothing."""

import asyncio
import time
from collections.abc import Sequence

from devcluster.kubelet.containers.logs import LogWriter
from devcluster.kubelet.processes.sessions import CannotExecute, Session, Wish
from devcluster.kubelet.processes.usage import Usage, played
from devcluster.kubelet.runtime import Container, ContainerPlan, Exit, container_id
from devcluster.nodes import Played
from devcluster.resources import Obj


class PlayedContainer:
    def __init__(self, stop_seconds: float, plan: ContainerPlan):
        self.id, self.began = container_id(), time.monotonic()
        self._stop_seconds, self._ending = stop_seconds, plan.ending
        self._cpu_cores, self._memory_bytes = plan.cpu_cores, plan.memory_bytes
        self._stopped = asyncio.Event()

    async def wait(self) -> Exit:
        code = 0
        try:
            await asyncio.wait_for(self._stopped.wait(), self._ending.seconds if self._ending else None)
        except TimeoutError:
            code = self._ending.code if self._ending else 0
        return Exit(code, "Error" if code else "Completed")

    async def stop(self, grace_seconds: float) -> None:
        await asyncio.sleep(min(self._stop_seconds, grace_seconds))
        self._stopped.set()

    def usage(self) -> Usage:
        phase = int(self.id[-4:], 16) / 2**16
        return played(time.monotonic() - self.began, self._cpu_cores, self._memory_bytes, phase)

    async def execute(self, wish: Wish) -> Session:
        raise CannotExecute("this pod is only played: nothing runs in it")


class PlayedRuntime:
    real = False

    def __init__(self, timing: Played):
        self._timing = timing

    async def start(self, plan: ContainerPlan) -> PlayedContainer:
        await asyncio.sleep(self._timing.start_seconds)
        if plan.image.says:
            log = LogWriter(plan.log)
            log.lines("stdout", [line.encode() for line in plan.image.says])
            log.close()
        return PlayedContainer(self._timing.stop_seconds, plan)

    async def measure(self, containers: Sequence[Container]) -> dict[str, Usage]:
        return {c.id: c.usage() for c in containers if isinstance(c, PlayedContainer)}

    async def forget(self, pod: Obj) -> None:
        pass

    async def close(self) -> None:
        pass
