"""Look at everything, as a report. A broken part is reported as a problem; the rest is still reported."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from . import causes, inventory, nvml, pods, samples
from .inventory import Device
from .kubelet import given_devices
from .nvml import Unanswered
from .schema import GpuFacts, GpuSample, Holding, Inventory, Look, OomKills, Trouble, VolumeUse, Xid
from .unary import CallFailed
from .xids import XidWatch

INVENTORY_SECONDS = 60
# Limit, so that a storm of Xids between two looks does not fill this process' memory.
MOST_XIDS = 500


class Looker:
    """Source of looks. It keeps one session of NVML; if the session ends, the next look begins another."""

    def __init__(
        self,
        dev: Path,
        proc: Path,
        kubelet: Path,
        pod: str = "",
        on_xid: Callable[[], object] = lambda: None,
        volumes: Callable[[], list[VolumeUse] | None] = lambda: None,
        oom_kills: Callable[[], list[OomKills] | None] = lambda: None,
    ) -> None:
        self.inventory: Inventory | None = None
        self._dev, self._proc, self._kubelet, self._pod = dev, proc, kubelet, pod
        self._on_xid, self._volumes, self._oom_kills = on_xid, volumes, oom_kills
        self._xids: deque[Xid] = deque(maxlen=MOST_XIDS)
        self._known: dict[str, GpuFacts] = {}
        self._session: _Session | None = None

    def look(self) -> Look:
        gpus, troubles = self._gpus()
        # Taken after the GPUs, as the driver may have been slow to answer.
        seen: Look = {"taken_at": time.time(), "troubles": troubles, "gpus": gpus, "xids": []}
        try:
            seen["holdings"] = self._holdings()
        except CallFailed as failure:
            troubles.append({"code": "kubelet_silent", "detail": str(failure)})
        if (volumes := self._volumes()) is not None:
            seen["volumes"] = volumes
        if (kills := self._oom_kills()) is not None:
            seen["oom_kills"] = kills
        seen["xids"] = self.new_xids()
        return seen

    def new_xids(self) -> list[Xid]:
        """Return each new Xid once, to whichever thread asks first."""
        new = []
        with suppress(IndexError):
            while True:
                new.append(self._xids.popleft())
        return new

    def close(self) -> None:
        if self._session:
            self._session.close()
            self._session = None

    def _gpus(self) -> tuple[list[GpuSample], list[Trouble]]:
        try:
            session = self._session or self._begin()
            if time.monotonic() >= session.inventory_due:
                session.take_inventory()
                self._remember(session)
            sampled = [self._sample(session, uuid) for uuid in self._known]
        except Unanswered as answer:
            self.close()
            return [], [causes.why_not(answer, self._dev, self._proc)]
        troubles = [*self._unnamed(session, sampled), *session.xids.troubles]
        return sampled, [*troubles, *causes.missing_devices(self._dev)]

    def _unnamed(self, session: _Session, sampled: list[GpuSample]) -> list[Trouble]:
        """Report GPUs without a UUID. Skip known failing GPUs: their samples name the GPU, a problem only the node."""
        if not session.unnamed and not session.inventory["gpus"]:
            return [{"code": "no_gpus", "detail": ""}]
        failing = {self._known[gpu["uuid"]]["index"] for gpu in sampled if gpu["state"] != "ok"}
        return [trouble for index, trouble in session.unnamed.items() if index not in failing]

    def _begin(self) -> _Session:
        nvml.begin()
        try:
            self._session = _Session(self._found)
        except Unanswered:
            nvml.end()
            raise
        self._remember(self._session)
        return self._session

    def _remember(self, session: _Session) -> None:
        self._known |= {gpu["uuid"]: gpu for gpu in session.inventory["gpus"]}
        self.inventory = {**session.inventory, "gpus": list(self._known.values())}

    def _sample(self, session: _Session, uuid: str) -> GpuSample:
        if device := session.devices.get(uuid):
            return samples.take(device, partial(pods.owner_of, proc=self._proc))
        return {"uuid": uuid, "state": "gone"}

    def _found(self, xid: Xid) -> None:
        self._xids.append(xid)
        self._on_xid()

    def _holdings(self) -> list[Holding]:
        uuids = {gpu["index"]: uuid for uuid, gpu in self._known.items()}
        return list(pods.holdings(given_devices(self._kubelet, self._pod), uuids))


class _Session:
    """Session from nvmlInit to nvmlShutdown, the lifetime of handles. A GPU that fell off the bus keeps its handle."""

    def __init__(self, found: Callable[[Xid], None]) -> None:
        self.devices: dict[str, Device] = {}
        self.take_inventory()
        self.xids = XidWatch(list(self.devices.values()), found)

    def take_inventory(self) -> None:
        self.inventory, devices, self.unnamed = inventory.take()
        self.devices |= {device.uuid: device for device in devices}
        self.inventory_due = time.monotonic() + INVENTORY_SECONDS

    def close(self) -> None:
        self.xids.stop()
        nvml.end()
