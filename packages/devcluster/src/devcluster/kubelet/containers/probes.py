"""Startup, readiness and liveness probes: their schedule, and the effect of their results."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from devcluster.kubelet.containers.actions import Errored, Failed, Place, act
from devcluster.resources import Obj

Tell = Callable[[str], None]
"""One answer that is not good, in words."""


@dataclass
class Gate:
    """Results of one container's probes so far."""

    started: bool
    ready: bool


class Prober:
    """Runner of one container's probes while it lives; `changed` is called when its gate changes."""

    def __init__(self, place: Place, changed: Callable[[], None], unhealthy: Tell):
        self._place, self._changed, self._unhealthy = place, changed, unhealthy
        found = {kind: place.spec.get(f"{kind}Probe") for kind in ("startup", "readiness", "liveness")}
        self._probes: dict[str, Obj] = {kind: probe for kind, probe in found.items() if probe}
        self.gate = Gate(
            started="startup" not in self._probes, ready=not self._probes.keys() & {"startup", "readiness"}
        )

    async def run(self) -> tuple[str, Obj]:
        """Return kind and spec of the probe that calls for a restart; otherwise run for ever."""
        if probe := self._probes.get("startup"):
            if not await self._starts(probe):
                return "startup", probe
            self.gate.started = True
            self.gate.ready = "readiness" not in self._probes
            self._changed()
        readiness = self._probes.get("readiness")
        watching = asyncio.ensure_future(self._readiness(readiness)) if readiness else None
        try:
            if liveness := self._probes.get("liveness"):
                await self._liveness(liveness)
                return "liveness", liveness
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            if watching:
                watching.cancel()

    async def _starts(self, probe: Obj) -> bool:
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        failures = 0
        while True:
            if await self._ask(probe, "Startup"):
                return True
            failures += 1
            if failures >= probe["failureThreshold"]:
                return False
            await asyncio.sleep(probe["periodSeconds"])

    async def _readiness(self, probe: Obj) -> None:
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        good = bad = 0
        while True:
            good, bad = (good + 1, 0) if await self._ask(probe, "Readiness") else (0, bad + 1)
            ready = self.gate.ready
            if good >= probe["successThreshold"]:
                ready = True
            elif bad >= probe["failureThreshold"]:
                ready = False
            if ready != self.gate.ready:
                self.gate.ready = ready
                self._changed()
            await asyncio.sleep(probe["periodSeconds"])

    async def _liveness(self, probe: Obj) -> None:
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        failures = 0
        while True:
            failures = 0 if await self._ask(probe, "Liveness") else failures + 1
            if failures >= probe["failureThreshold"]:
                return
            await asyncio.sleep(probe["periodSeconds"])

    async def _ask(self, probe: Obj, word: str) -> bool:
        try:
            await act(self._place, probe, probe["timeoutSeconds"])
            return True
        except Failed as error:
            self._unhealthy(f"{word} probe failed: {error}")
        except Errored as error:
            self._unhealthy(f"{word} probe errored and resulted in unknown state: {error}")
        return False
