"""The driver's errors (Xids) as they happen: a thread waits for them, at most 250 ms at a time."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pynvml

from .inventory import Device
from .nvml import Failed, NotOffered, Over, Unanswered, ask
from .schema import Trouble, Xid

WAIT_MILLISECONDS = 250
_NO_INSTANCE = 0xFFFFFFFF


class XidWatch:
    """Watch over one session of NVML. It calls `found` in its own thread. `stop` returns when it has left NVML."""

    def __init__(self, devices: Iterable[Device], found: Callable[[Xid], None]) -> None:
        self._unregistered: list[Trouble] = []
        self._waits_fail: list[Trouble] = []
        self._stopping = threading.Event()
        self._found = found
        self._uuids = {_address(device.handle): device.uuid for device in devices}
        self._thread: threading.Thread | None = None
        if events := self._register(devices):
            self._thread = threading.Thread(target=self._watch, args=(events,), name="xids", daemon=True)
            self._thread.start()

    @property
    def troubles(self) -> list[Trouble]:
        return self._unregistered + self._waits_fail

    def stop(self) -> None:
        self._stopping.set()
        if self._thread:
            self._thread.join()

    def _register(self, devices: Iterable[Device]) -> Any:
        """Return the set of events, or None if no GPU reports any."""
        try:
            events = ask(pynvml.nvmlEventSetCreate)
        except (NotOffered, Failed) as why:
            self._unregistered.append({"code": "xids_unwatched", "detail": why.error})
            return None
        registered = False
        for device in devices:
            try:
                offered = ask(pynvml.nvmlDeviceGetSupportedEventTypes, device.handle)
                if wanted := offered & pynvml.nvmlEventTypeXidCriticalError:
                    ask(pynvml.nvmlDeviceRegisterEvents, device.handle, wanted, events)
                    registered = True
            except NotOffered:
                continue
            except Failed as failure:
                self._unregistered.append(
                    {"code": "xids_unwatched", "detail": f"{device.uuid}: {failure.error}"}
                )
        if registered:
            return events
        _free(events)
        return None

    def _watch(self, events: Any) -> None:
        while not self._stopping.is_set():
            try:
                event = ask(pynvml.nvmlEventSetWait_v2, events, WAIT_MILLISECONDS)
            except Over:
                break
            except (NotOffered, Failed) as why:
                if why.error == "timeout":
                    self._waits_fail = []
                else:  # a lost GPU answers at once, for ever
                    self._waits_fail = [{"code": "xids_unwatched", "detail": why.error}]
                    self._stopping.wait(WAIT_MILLISECONDS / 1000)
                continue
            self._waits_fail = []
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                self._found(self._xid(event))
        _free(events)

    def _xid(self, event: Any) -> Xid:
        xid: Xid = {"xid": event.eventData, "at": time.time()}
        # Look up by handle, without a call: the GPU that just failed may not answer any more.
        if uuid := self._uuids.get(_address(event.device)):
            xid["uuid"] = uuid
        if event.gpuInstanceId != _NO_INSTANCE:
            xid["gpu_instance"] = event.gpuInstanceId
        if event.computeInstanceId != _NO_INSTANCE:
            xid["compute_instance"] = event.computeInstanceId
        return xid


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _free(events: Any) -> None:
    with suppress(Unanswered):
        ask(pynvml.nvmlEventSetFree, events)
