"""Launches through Berth, beside a bare client that applies the same objects and watches (played pods)"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import django
from websockets.sync.client import connect

from devcluster.testing.cluster import running
from tests.bench import Figure
from tests.bench.helpers.parts import call, trial
from tests.e2e.stack import Client, Stack, until

RUNS = 3
ALONE = 5  # launches one after the other in each run; their median counts
MANY = 100
PEOPLE = 20  # launch at the same time
NODES = """
nodes:
- {name: gpu, count: 13, cpu: 256, memory: 2Ti,
   gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 8, compute: "8.0"}}
"""
cluster_of = contextmanager(running)


def measure() -> Iterator[Figure]:
    """Alternate the two in each run. The bare client has its own devcluster, so Berth's watches do not slow it."""
    with trial(NODES) as stack, cluster_of(stack.folder / "own", "--pods", "played", nodes=NODES) as own:
        call(stack.environ, "seeds.launches", MANY)
        os.environ |= {"BERTH_STATE_DIR": str(stack.folder), "DJANGO_SETTINGS_MODULE": "portal.settings"}
        django.setup()
        through = ThroughBerth(stack)
        through.alone()  # creates the tenant's namespace and opens connections

        from tests.bench.helpers.bare_client import BareClient

        bare = BareClient(own.kubeconfig)
        for run in range(1, RUNS + 1):
            yield from compare(f"one alone, run {run}", *alone(bare, through))
            yield from compare(f"{MANY} at once, run {run}", bare.start(MANY), through.start(MANY))
            bare.clear()
            through.clear()


def alone(bare: Any, through: ThroughBerth) -> tuple[float, float]:
    """Return the median seconds of single launches, bare client and Berth in turn."""
    pairs = []
    for _ in range(ALONE):
        pairs.append((bare.start(1), through.alone()))
        bare.clear()
        through.clear()
    first, second = zip(*pairs, strict=True)
    return median(first), median(second)


def compare(what: str, bare: float, berth: float) -> Iterator[Figure]:
    yield Figure(f"{what}: the bare client", bare, "s")
    yield Figure(f"{what}: Berth", berth, "s")
    yield Figure(f"{what}: Berth takes longer by", berth - bare, "s")
    yield Figure(f"{what}: times as long", berth / bare, "")


class ThroughBerth:
    """Launches through Berth's API, as people make them."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.api: Client = stack.client(stack.token("alice", "read", "workspaces"))
        self.launched = 0

    def launch(self, number: int) -> None:
        body = {"tenant": "demo", "name": f"run-{number}", "image": "jupyter", "flavor": "a100-1"}
        status, answer = self.api("POST", "workspaces/", body)
        assert status == 201, answer

    def numbers(self, count: int) -> range:
        self.launched += count
        return range(self.launched - count, self.launched)

    def alone(self) -> float:
        """Return the seconds until an open page's socket gets the frame with `ready`."""
        ticket = self.api("POST", "ws-tickets/")[1]["ticket"]
        address = f"ws://{urlsplit(self.stack.address).netloc}/ws/workspaces/?token={ticket}"
        with connect(address) as socket:
            assert json.loads(socket.recv(10))["type"] == "snapshot"
            (number,) = self.numbers(1)
            began = time.monotonic()
            asking = threading.Thread(target=self.launch, args=[number])
            asking.start()
            phase = ""
            while phase != "ready":
                frame = json.loads(socket.recv(60))
                phase = frame["workspace"]["phase"] if frame["type"] == "workspace" else phase
            took = time.monotonic() - began
        asking.join()
        return took

    def start(self, count: int) -> float:
        """Return the seconds until `ready` is committed for the last workspace."""
        numbers = self.numbers(count)
        began = time.monotonic()
        with ThreadPoolExecutor(PEOPLE) as people:
            list(people.map(self.launch, numbers))
        until("all are ready", lambda: self.phases() == ["ready"] * count, 240, pause=0.02)
        return time.monotonic() - began

    def clear(self) -> None:
        from workspaces.models import Workspace

        for pk in Workspace.objects.filter(deleted_at=None).values_list("pk", flat=True):
            assert self.api("DELETE", f"workspaces/{pk}/?delete_disk=true")[0] == 202
        until("all are deleted", lambda: not self.phases(), 240, pause=0.2)

    def phases(self) -> list[str]:
        from workspaces.models import Workspace

        return list(Workspace.objects.filter(deleted_at=None).order_by().values_list("phase", flat=True))
