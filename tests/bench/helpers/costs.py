"""What a piece of work costs: seconds, CPU of all of Berth's processes, requests that the API server took."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kubernetes import config

from tests.bench.helpers.parts import cpu_of, processes_of
from tests.e2e.stack import Stack

IDLE_SECONDS = 20
SETTLING_SECONDS = 3  # what is done after the last answer counts as well
COUNTED = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
# Not about an object, as this very question; and watches, which are counted when they end.
NOT_COUNTED = re.compile(r'(^|,)(resource=""|verb="(WATCH|CONNECT)")')


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu: float
    requests: float | None  # of everybody; None: the server does not count them, as the trial cluster


class Meter:
    """Takes costs, without what idle processes cost in the same time."""

    def __init__(self, stack: Stack, kubeconfig: Path) -> None:
        self._stack = stack
        self._client = config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]
        self._idle = Cost(0, 0, 0)
        idle = self.of(_nothing)
        took = IDLE_SECONDS + SETTLING_SECONDS
        self._idle = Cost(0, idle.cpu / took, None if idle.requests is None else idle.requests / took)

    def of(self, work: Callable[[], float]) -> Cost:
        """Do the work, which returns its seconds."""
        cpu, requests, began = self._cpu(), self._requests(), time.monotonic()
        seconds = work()
        time.sleep(SETTLING_SECONDS)
        took = time.monotonic() - began
        spent = sum(after - cpu.get(pid, 0.0) for pid, after in self._cpu().items()) - took * self._idle.cpu
        now = self._requests()
        if requests is None or now is None or self._idle.requests is None:
            return Cost(seconds, spent, None)
        return Cost(seconds, spent, now - requests - took * self._idle.requests)

    def _cpu(self) -> dict[int, float]:
        """Return CPU seconds by process, without the trial cluster's."""
        of_parts = cpu_of(processes_of(self._stack))
        return {
            pid: seconds
            for part, pids in of_parts.items()
            if part != "cluster"
            for pid, seconds in pids.items()
        }

    def _requests(self) -> float | None:
        """Return the requests about objects so far, of all clients."""
        asked = self._client.param_serialize(
            "GET", "/metrics", header_params={"Accept": "text/plain"}, auth_settings=["BearerToken"]
        )
        answer = self._client.call_api(*asked).response
        if answer.status != 200:
            return None
        return sum(
            float(value)
            for told, value in COUNTED.findall(answer.data.decode())
            if not NOT_COUNTED.search(told)
        )


def _nothing() -> float:
    time.sleep(IDLE_SECONDS)
    return IDLE_SECONDS
