"""Played pods: nothing runs; they only go through the phases, so that thousands of them cost next to nothing."""

import asyncio

from devcluster.kubelet.runtime import ContainerPlan, Ending, Exit, container_id
from devcluster.kubelet.sessions import CannotExecute, Session, Wish
from devcluster.nodes import Played
from devcluster.resources import Obj


class PlayedContainer:
    def __init__(self, stop_seconds: float, ending: Ending | None):
        self.id = container_id()
        self._stop_seconds, self._ending = stop_seconds, ending
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

    async def execute(self, wish: Wish) -> Session:
        raise CannotExecute("this pod is only played: nothing runs in it")


class PlayedRuntime:
    real = False

    def __init__(self, timing: Played):
        self._timing = timing

    async def start(self, plan: ContainerPlan) -> PlayedContainer:
        await asyncio.sleep(self._timing.start_seconds)
        return PlayedContainer(self._timing.stop_seconds, plan.ending)

    async def forget(self, pod: Obj) -> None:
        pass

    async def close(self) -> None:
        pass
