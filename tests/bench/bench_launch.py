"""Launches through Berth, beside a bare client that makes the same objects (in KUBECONFIG's cluster, or in trials)"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Protocol
from urllib.parse import urlsplit

import django
from websockets.sync.client import connect

from devcluster.testing.cluster import running
from tests.bench import Figure
from tests.bench.helpers.costs import Cost, Meter
from tests.bench.helpers.parts import call, on_cluster, temporary, trial
from tests.e2e.stack import Client, Stack, until

RUNS = 3
ALONE = 5  # launches one after the other in each run; their median counts
SEVERAL, MANY = 20, 100
PATIENCE_SECONDS = 300
TENANT = "bench"
NODES = """
nodes:
- {name: gpu, count: 13, cpu: 256, memory: 2Ti,
   gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 8, compute: "8.0"}}
"""
cluster_of = contextmanager(running)


class Side(Protocol):
    """One of the two that are compared. Times are seconds until people can work, or until nothing is left."""

    def launch(self, count: int) -> float: ...

    def stop(self) -> None: ...

    def start(self) -> float:
        """Start what was stopped: homes are there."""

    def clear(self) -> float: ...


def measure() -> Iterator[Figure]:
    with together() as (stack, kubeconfig):
        flavor, tokens = call(stack.environ, "seeds.launches", MANY)
        os.environ |= {"BERTH_STATE_DIR": str(stack.folder), "DJANGO_SETTINGS_MODULE": "portal.settings"}
        django.setup()
        from tests.bench.helpers.bare_client import BareClient

        bare, through = BareClient(kubeconfig, flavor), ThroughBerth(stack, flavor, tokens)
        try:
            for side in (bare, through):  # namespaces, and open connections
                side.launch(1)
                side.clear()
            meter = Meter(stack, kubeconfig)
            for run in range(1, RUNS + 1):
                yield from alone(f"one alone, run {run}", bare, through)
                for count in (SEVERAL, MANY):
                    yield from at_once(f"{count} at once, run {run}", count, bare, through, meter)
        finally:
            through.clear()
            bare.remove(f"berth-{TENANT}")


@contextmanager
def together() -> Iterator[tuple[Stack, Path]]:
    """Start Berth. Yield it with the bare client's kubeconfig.

    Without KUBECONFIG each has a trial cluster of its own, so that Berth's watches do not slow the bare client.
    """
    if given := os.environ.get("KUBECONFIG"):
        with on_cluster(given) as stack:
            yield stack, Path(given)
    else:
        with (
            temporary() as folder,
            trial(NODES) as stack,
            cluster_of(folder, "--pods", "played", nodes=NODES) as own,
        ):
            yield stack, own.kubeconfig


def alone(title: str, bare: Side, berth: Side) -> Iterator[Figure]:
    """Measure single launches and starts, bare client and Berth in turn."""
    new, there = list[tuple[float, float]](), list[tuple[float, float]]()
    for _ in range(ALONE):
        new.append((bare.launch(1), berth.launch(1)))
        bare.stop()
        berth.stop()
        there.append((bare.start(), berth.start()))
        bare.clear()
        berth.clear()
    for homes, pairs in (("new home", new), ("its home is there", there)):
        of_bare, of_berth = (median(seconds) for seconds in zip(*pairs, strict=True))
        yield from compare(f"{title}, {homes}", of_bare, of_berth)
        yield Figure(f"{title}, {homes}: Berth takes longer by", of_berth - of_bare, "s")


def at_once(title: str, count: int, bare: Side, berth: Side, meter: Meter) -> Iterator[Figure]:
    sides = (bare, berth)
    new = [meter.of(partial(side.launch, count)) for side in sides]
    for side in sides:
        side.stop()
    there = [meter.of(side.start) for side in sides]
    gone = [meter.of(side.clear) for side in sides]
    for what, (of_bare, of_berth), sent in (
        ("new homes", new, 4),
        ("homes are there", there, 1),
        ("deleted", gone, 4),
    ):
        yield from compare(f"{title}, {what}", of_bare.seconds, of_berth.seconds)
        yield Figure(f"{title}, {what}: times as long", of_berth.seconds / of_bare.seconds, "")
        yield Figure(f"{title}, {what}: Berth's CPU for each", of_berth.cpu / count, "s")
        yield from requests(f"{title}, {what}", count, of_bare, of_berth, sent)


def requests(title: str, count: int, bare: Cost, berth: Cost, sent: int) -> Iterator[Figure]:
    """Tell the requests of one workspace. `sent`: what the bare client itself sends for it.

    The server counts everybody's. Controllers, scheduler and kubelets send as many for either side.
    """
    if bare.requests is None or berth.requests is None:
        return
    everybody = [cost / count for cost in (bare.requests, berth.requests)]
    yield Figure(f"{title}: everybody's requests for each, the bare client's", everybody[0], "")
    yield Figure(f"{title}: everybody's requests for each, Berth's", everybody[1], "")
    yield Figure(f"{title}: Berth's own requests for each", everybody[1] - everybody[0] + sent, "")


def compare(what: str, bare: float, berth: float) -> Iterator[Figure]:
    yield Figure(f"{what}: the bare client", bare, "s")
    yield Figure(f"{what}: Berth", berth, "s")


class ThroughBerth:
    """Launches through Berth's API, each by another person, with one open page."""

    def __init__(self, stack: Stack, flavor: str, tokens: list[str]) -> None:
        self.stack, self.flavor = stack, flavor
        self.people = [stack.client(token) for token in tokens]
        self.launched = 0

    def launch(self, count: int) -> float:
        """Return the seconds until the page's socket has got `ready` of the last."""
        self.launched += 1
        asked = [
            Asked(person, "workspaces/", 201, self._body(f"run-{self.launched}-{number}"))
            for number, person in enumerate(self.people[:count])
        ]
        return self._until("ready", asked)

    def stop(self) -> None:
        self._until("stopped", self._of_each("stop/"))

    def start(self) -> float:
        return self._until("ready", self._of_each("start/"))

    def clear(self) -> float:
        """Delete all with their disks. Return the seconds until the rows say that they are deleted."""
        from workspaces.models import Workspace

        asked = self._of_each("?delete_disk=true", "DELETE")
        began = time.monotonic()
        with ThreadPoolExecutor(MANY) as threads:
            list(threads.map(Asked.send, asked))
        there = Workspace.objects.filter(deleted_at=None)
        until("all are deleted", lambda: not there.exists(), PATIENCE_SECONDS, pause=0.05)
        return time.monotonic() - began

    def _body(self, name: str) -> dict[str, str]:
        return {"tenant": TENANT, "name": name, "image": "jupyter", "flavor": self.flavor}

    def _of_each(self, action: str, method: str = "POST") -> list[Asked]:
        """Return a request for each workspace that is there, by its owner."""
        from workspaces.models import Workspace

        rows = Workspace.objects.filter(deleted_at=None).values_list("pk", "name")
        owners = [(pk, self.people[int(name.rpartition("-")[2])]) for pk, name in rows]
        return [Asked(owner, f"workspaces/{pk}/{action}", 202, {}, method) for pk, owner in owners]

    def _until(self, phase: str, asked: list[Asked]) -> float:
        """Send the requests at once. Return the seconds until the socket has told this phase of as many workspaces."""
        ticket = self.people[0]("POST", "ws-tickets/")[1]["ticket"]
        address = f"ws://{urlsplit(self.stack.address).netloc}/ws/workspaces/?token={ticket}"
        with connect(address, max_size=None) as socket, ThreadPoolExecutor(MANY) as threads:
            assert json.loads(socket.recv(10))["type"] == "snapshot"
            began = time.monotonic()
            answers = [threads.submit(one.send) for one in asked]
            reached = set[str]()
            while len(reached) < len(asked):
                frame = json.loads(socket.recv(PATIENCE_SECONDS))
                if frame["type"] == "workspace" and frame["workspace"]["phase"] == phase:
                    reached.add(frame["workspace"]["id"])
            took = time.monotonic() - began
            for answer in answers:
                answer.result()
        return took


@dataclass(frozen=True)
class Asked:
    """A request that a person will send."""

    person: Client
    path: str
    expected: int
    body: dict[str, str]
    method: str = "POST"

    def send(self) -> None:
        status, answer = self.person(self.method, self.path, self.body)
        assert status == self.expected, answer
