"""Played pods: nothing runs; they only go through the phases, so that thousands of them cost next to nothing."""

import asyncio

from devcluster.kubelet.runtime import ContainerPlan, Exit, container_id
from devcluster.kubelet.sessions import CannotExecute, Session, Wish
from devcluster.nodes import Played
from devcluster.resources import Obj


class PlayedContainer:
    def __init__(self, stop_seconds: float):
        self.id = container_id()
        self._stop_seconds = stop_seconds
        self._stopped = asyncio.Event()

    async def wait(self) -> Exit:
        await self._stopped.wait()
        return Exit(0, "Completed")

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
        return PlayedContainer(self._timing.stop_seconds)

    async def forget(self, pod: Obj) -> None:
        pass

    async def close(self) -> None:
        pass
