"""Many nodes with eight GPUs each, whose agents report to a portal: their rows, and the agents themselves."""

from __future__ import annotations

import heapq
import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any

from tests.shared.agent_reports import batch, facts, holding, report, sample

GPUS_PER_NODE = 8
HELD = 5  # by two pods, of four GPUs and of one
THREADS = 16
FACTS = {"ecc_after_reset": True, "mig": False, "power_limit_watts": 400.0}
CHANGING = {
    "memory_busy_percent": 20, "memory_used_mib": 80_000, "sm_clock_mhz": 1410, "memory_clock_mhz": 1593,
    "pcie_generation": 4, "pcie_width": 16, "pcie_replays": 0, "pcie_sent_bytes": 2**50,
    "pcie_received_bytes": 2**50, "nvlink_sent_kib": 2**40, "nvlink_received_kib": 2**40,
    "memory_temperature_celsius": 70,
}  # fmt: skip
STEADY = {
    "slowed_by": ["power_cap"], "ecc_uncorrected_ever": 0,
    "ecc_corrected_since_boot": 0, "ecc_corrected_ever": 2, "rows_remapped_corrected": 0,
    "rows_remapped_uncorrected": 0, "row_remap_pending": False, "row_remap_failed": False,
}  # fmt: skip


@dataclass
class Node:
    """Agent of one node: its connection, and the number of its reports."""

    number: int
    port: int
    secret: str
    sequence: int = 0
    connection: HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = HTTPConnection("127.0.0.1", self.port, timeout=30)

    def tell(self) -> int:
        """Send one report. Return the status of the answer."""
        self.sequence += 1
        body = self.body()
        try:
            return self._send(body)
        except (ConnectionError, HTTPException):  # the other side has closed the kept connection
            self.connection.close()
            return self._send(body)

    def _send(self, body: str) -> int:
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        self.connection.request("POST", "/api/v1/agent/samples/", body, headers)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status

    def body(self) -> str:
        uuids = [f"GPU-{self.number:08x}-{gpu:04x}-4000-8000-000000000000" for gpu in range(GPUS_PER_NODE)]
        pods = [f"run-{self.number}-{gpu // 4}" for gpu in range(GPUS_PER_NODE)]
        gpus = [
            facts(gpu, uuid, pci_bus=f"00000000:{gpu:02X}:00.0", **FACTS) for gpu, uuid in enumerate(uuids)
        ]
        samples = [_sample(uuid, pod) for uuid, pod in zip(uuids, pods, strict=True)]
        holdings = [holding(pod, uuid) for uuid, pod in zip(uuids[:HELD], pods[:HELD], strict=True)]
        latest = report(self.sequence, *samples, holdings=holdings)
        return json.dumps(batch(latest, gpus=gpus, node=f"gpu-{self.number}", agent="bench"))


def _sample(uuid: str, pod: str) -> dict[str, Any]:
    busy = random.randrange(101)
    process = {
        "pid": 4000, "kind": "compute", "memory_mib": 70_000, "sm_percent": busy, "pod_uid": pod,
        "container_id": "c" * 64,
    }  # fmt: skip
    now: dict[str, Any] = {name: random.randrange(most + 1) for name, most in CHANGING.items()}
    now |= {
        "utilization_percent": busy,
        "power_watts": 60 + busy * 3.4,
        "temperature_celsius": 30 + busy // 3,
    }
    return sample(uuid, processes=[process], **now, **STEADY)


class Fleet:
    """Agents that report every `interval_seconds`, evenly spread. Lags count from when a report was due."""

    def __init__(self, nodes: int, ports: list[int], secret: str, interval_seconds: float) -> None:
        self.nodes = [Node(number, ports[number % len(ports)], secret) for number in range(1, nodes + 1)]
        self.lags: list[float] = []
        self.refused: dict[int, int] = {}
        self.began_at = 0
        self._interval = interval_seconds
        self._counting = threading.Lock()

    def tell_once(self) -> None:
        with ThreadPoolExecutor(THREADS) as threads:
            assert set(threads.map(Node.tell, self.nodes)) == {204}

    def tell_for(self, seconds: float) -> None:
        self.began_at, began = int(time.time()), time.monotonic()
        due = [
            (began + number * self._interval / len(self.nodes), number) for number in range(len(self.nodes))
        ]
        with ThreadPoolExecutor(THREADS) as threads:
            while due[0][0] < began + seconds:
                at, number = heapq.heappop(due)
                time.sleep(max(0.0, at - time.monotonic()))
                threads.submit(self._tell, self.nodes[number], at)
                heapq.heappush(due, (at + self._interval, number))

    def _tell(self, node: Node, due_at: float) -> None:
        status = node.tell()
        lag = time.monotonic() - due_at
        with self._counting:
            if status == 204:
                self.lags.append(lag)
            else:
                self.refused[status] = self.refused.get(status, 0) + 1
